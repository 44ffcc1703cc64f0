"""Reports from ``app`` to the command line: plain values that can be printed without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the progress of slow work: task, amount done, total (0 while unknown).

May be called from another thread. ``done >= total > 0`` ends a task.
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """The server is ready. ``address`` is the bound one, with the actual port instead of 0."""

    address: str
    store: str
    """Kind of the store, ``edge`` or ``qdrant``."""
    location: str
    """The data folder, or the Qdrant server's address."""
    points: int
    model: str
    dimensions: int
    seconds: float
    """Time since the call of ``serve``, including maintenance."""
    client_address: str = ""
    """Bound address for clients with certificates, if it is another."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. ``detail`` is a sentence; for a failure it says what to do."""

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
        """Whether every check passed."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class CompactReport:
    """The result of a compaction. ``changed`` is False if there was nothing to do.

    ``skipped``: the collections that were not compacted, each with the reason.
    """

    changed: bool
    location: str
    bytes_before: int
    bytes_after: int
    seconds: float
    skipped: Sequence[str] = ()
