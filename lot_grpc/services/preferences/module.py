"""Preferences: put, read, listed, deleted."""

from __future__ import annotations

from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.runtime import Runtime


class PreferencesModule:
    """What is done with preferences."""

    def __init__(self, runtime: Runtime) -> None:
        self.preferences = Preferences(runtime)
