"""Preferences: put, read, listed, deleted."""

from __future__ import annotations

from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.runtime import Runtime


class PreferencesModule:
    """Everything about preferences."""

    def __init__(self, runtime: Runtime) -> None:
        tombstones = runtime.tombstones
        self.preferences = Preferences(runtime.store, runtime.time, runtime.idempotency, tombstones)
