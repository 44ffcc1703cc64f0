from __future__ import annotations

from tests.cli.conftest import logging_as_it_was, no_settings_around, runner

__all__ = ["logging_as_it_was", "no_settings_around", "runner"]
