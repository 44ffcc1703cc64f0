"""What ``app`` tells the command line: plain values, so that printing them needs no server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told of slow work: what it is, how much is done, how much there is (0 while unknown).

May be called from another thread. ``done >= total > 0`` ends a task.
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """The server answers calls. ``address`` is the one it was bound to, port 0 replaced."""

    address: str
    store: str
    """Kind of the store, ``edge`` or ``qdrant``."""
    location: str
    """The data folder, or the Qdrant server's address."""
    points: int
    model: str
    dimensions: int
    seconds: float
    """Time from the call of ``serve`` to here, maintenance included."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``detail`` is a sentence; of a failure, what to do."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ModelReport:
    """The model in use. ``origin``: ``path``, ``pack``, ``cache``, ``download`` or its URL.

    ``file`` and ``sha256`` are empty for a model that another server runs.
    """

    name: str
    dimensions: int
    file: str
    sha256: str
    origin: str


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The store in use. Sizes in bytes, 0 when unknown."""

    backend: str
    location: str
    points: dict[str, int]
    """By collection."""
    used_bytes: int
    free_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether the service would start here and now. Parts that failed to open are None."""

    checks: tuple[Check, ...]
    model: ModelReport | None = None
    store: StoreReport | None = None

    @property
    def ready(self) -> bool:
        """Every check passed."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compacting did. ``changed`` is False when there was nothing to do."""

    changed: bool
    location: str
    bytes_before: int
    bytes_after: int
    seconds: float
