"""The feed of changes over one store."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.change import DEFAULT_KEEP_SECONDS, DEFAULT_POLL_SECONDS
from lot_grpc.ports import VectorStore
from lot_grpc.services.changes.change_tracking_store import ChangeTrackingStore
from lot_grpc.services.changes.feed import Feed
from lot_grpc.services.changes.poller import Poller
from lot_grpc.services.changes.readers import Readers
from lot_grpc.services.changes.replicas import ReplicaRegistry
from lot_grpc.services.changes.sequencer import ChangeSequencer
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.time_source import TimeSource


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """How changes are told (settings), in seconds."""

    keep: float = DEFAULT_KEEP_SECONDS
    interval: float = DEFAULT_POLL_SECONDS


class ChangeTracking:
    """Stamps what is written to ``store``, and tells it.

    ``interval``: seconds after which this process publishes how far it has come, and looks for what
    others wrote.
    """

    def __init__(self, store: VectorStore, time_source: TimeSource, settings: ChangeFeed) -> None:
        self._time = time_source
        self._settings = settings
        self._replicas = ReplicaRegistry(store)
        self.interval = settings.interval
        self.sequencer = ChangeSequencer(self._replicas, time_source, exclusive=store.exclusive)
        self.store = ChangeTrackingStore(store, self.sequencer)

    def change_watcher(self, readers: Readers) -> ChangeWatcher:
        """Who tells. ``readers`` read what is told from its record."""
        feed = Feed(self.store)
        poller = Poller(
            feed,
            self.sequencer,
            self._replicas,
            self._time,
            exclusive=self.store.exclusive,
            interval=self._settings.interval,
        )
        keep = round(self._settings.keep * 1_000_000)
        return ChangeWatcher(self.store, self._time, self._replicas, feed, poller, readers, keep)
