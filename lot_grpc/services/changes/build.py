"""The feed of changes over one store."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.ports import VectorStore
from lot_grpc.services.changes.change_writers import ChangeWriters
from lot_grpc.services.changes.feed import Feed
from lot_grpc.services.changes.poller import Poller
from lot_grpc.services.changes.readers import Readers
from lot_grpc.services.changes.stamped_store import StampedStore
from lot_grpc.services.changes.stamps import Stamps
from lot_grpc.services.changes.watching import Watching
from lot_grpc.services.moments import Moments


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """How changes are told (settings), in seconds."""

    keep: float = 7 * 24 * 3600.0
    interval: float = 0.5


class Changing:
    """Stamps what is written to ``store``, and tells it.

    ``interval``: seconds after which this process publishes how far it has come, and looks for what
    others wrote.
    """

    def __init__(self, store: VectorStore, moments: Moments, wanted: ChangeFeed) -> None:
        self._moments = moments
        self._wanted = wanted
        self._writers = ChangeWriters(store)
        self.interval = wanted.interval
        self.stamps = Stamps(self._writers, moments, exclusive=store.exclusive)
        self.store = StampedStore(store, self.stamps)

    def watching(self, readers: Readers) -> Watching:
        """Who tells. ``readers`` read what is told from its record."""
        feed = Feed(self.store)
        poller = Poller(
            feed,
            self.stamps,
            self._writers,
            self._moments,
            exclusive=self.store.exclusive,
            interval=self._wanted.interval,
        )
        keep = round(self._wanted.keep * 1_000_000)
        return Watching(self.store, self._moments, self._writers, feed, poller, readers, keep)
