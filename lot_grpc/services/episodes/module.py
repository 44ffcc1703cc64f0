"""Episodes: recording, reading, replaying, abandoning, deleting, and analysing failures."""

from __future__ import annotations

from lot_grpc.services.episodes.abandoner import EpisodeAbandoner
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.episode_creator import EpisodeCreator
from lot_grpc.services.episodes.episode_ender import EpisodeEnder
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
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.runtime import Runtime


class EpisodesModule:
    """The services for episodes, except for recall and extraction."""

    def __init__(self, runtime: Runtime) -> None:
        store, time = runtime.store, runtime.time
        self.log = log = EventLog(store, runtime.gate)
        self.active_streams = streams = ActiveStreams()
        self.notifier = notifier = EpisodeNotifier(store)
        fence, reuse = Fence(store, log, time), ReuseCounter(store)
        self.episodes = episodes = Episodes(runtime, log, streams, reuse, notifier)
        self.creator = EpisodeCreator(runtime, episodes, log, reuse)
        self.ender = EpisodeEnder(runtime, episodes, streams, fence, reuse, notifier)
        self.recorder = EventRecorder(runtime, episodes, log, streams, fence, notifier)
        self.replayer = EpisodeReplayer(store, log, notifier)
        self.abandoner = EpisodeAbandoner(
            store, time, log, streams, notifier, runtime.settings.abandon_after_hours
        )
        self.failures = FailureAnalyzer(store, runtime.model)
        self.leases = Leases(fence, streams)
        self.maintenance = Maintenance(
            recoveries={
                "recordings": RecordingRecovery(store, log).roll_forward,
                "reuse": reuse.roll_forward,
            },
            sweeps={"abandon": self.abandoner.sweep},
            periodic={"leases": (RENEW_SECONDS, self.leases.renew)},
        )
