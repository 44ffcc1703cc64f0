"""Episodes: recorded, read, replayed, abandoned, deleted, and what made them fail."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.kernel.tombstones import Tombstone
from lot_grpc.ports import Record
from lot_grpc.services.episodes.abandoner import EpisodeAbandoner
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.episode_deleter import EpisodeDeleter
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import EventRecorder
from lot_grpc.services.episodes.failure_analyzer import FailureAnalyzer
from lot_grpc.services.episodes.fence import Fence
from lot_grpc.services.episodes.leases import RENEW_SECONDS, Leases
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.recordings import RecordingRecovery
from lot_grpc.services.episodes.replayer import EpisodeReplayer
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.episodes.spec import EPISODE
from lot_grpc.services.episodes.transfer import EpisodeTransfer
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.operations import Resources
from lot_grpc.services.runtime import Runtime


class EpisodeResources(Resources[Episode, EpisodeFilter]):
    """Episodes as those who go over all kinds see them: with the events that belong to them."""

    def __init__(self, runtime: Runtime, episodes: Episodes, deleter: EpisodeDeleter) -> None:
        super().__init__(EPISODE, runtime.store, runtime.tombstones)
        self._episodes = episodes
        self._deleter = deleter

    async def read(self, record: Record) -> Episode:
        """The episode of a record, with its events counted while it runs."""
        return await self._episodes.read(record)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if the episode was changed since."""
        return await self._deleter.finish_delete(stone)

    async def _delete(self, record: Record, unchanged: Sequence[str]) -> bool:
        return await self._deleter.delete_as_seen(record)


class EpisodesModule:
    """What is done with episodes, but for their recall and what is extracted from them."""

    def __init__(self, runtime: Runtime) -> None:
        store, time = runtime.store, runtime.time
        self.log = log = EventLog(store)
        self.active_streams = streams = ActiveStreams()
        self.notifier = notifier = EpisodeNotifier(store)
        fence, reuse = Fence(store, log, time), ReuseCounter(store)
        self.deleter = deleter = EpisodeDeleter(
            store, log, streams, runtime.tombstones, reuse, notifier
        )
        self.episodes = Episodes(
            store,
            runtime.indexer,
            time,
            runtime.idempotency,
            log,
            streams,
            fence,
            deleter,
            reuse,
            notifier,
        )
        self.recorder = EventRecorder(runtime, log, streams, fence, notifier, deleter)
        self.replayer = EpisodeReplayer(store, log, notifier)
        self.abandoner = EpisodeAbandoner(
            store, time, log, streams, notifier, runtime.settings.abandon_after_hours
        )
        self.failures = FailureAnalyzer(store, runtime.model)
        self.leases = Leases(fence, streams)
        self.resources = EpisodeResources(runtime, self.episodes, deleter)
        self.resources.transfer = EpisodeTransfer(time, log, streams)
        self.maintenance = Maintenance(
            recoveries={
                "recordings": RecordingRecovery(store, log).roll_forward,
                "reuse": reuse.roll_forward,
            },
            sweeps={"abandon": self.abandoner.sweep},
            periodic={"leases": (RENEW_SECONDS, self.leases.renew)},
        )
