"""The setup that commands do before they call ``app``."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lot_grpc.settings import Settings


@contextmanager
def importing() -> Iterator[None]:
    """Disable garbage collection: modules stay, and scanning them takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def begin(config: Path | None) -> Settings:
    """Read the settings and set up logging accordingly.

    Raises:
        SettingsError: They are invalid.
    """
    with importing():
        from lot_grpc.logs import configure_logging
        from lot_grpc.settings_file import load_settings

    settings = load_settings(config)
    keys = [settings.qdrant.api_key, settings.openai.api_key]
    configure_logging(
        settings.log.level,
        settings.log.format,
        secrets=[key.get_secret_value() for key in keys if key],
    )
    # gRPC's C core writes to stderr itself, bypassing the logging set up here.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    return settings
