"""The change feed."""

from __future__ import annotations

from lot_grpc.services.changes.feed import Feed
from lot_grpc.services.changes.poller import Poller
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.runtime import Runtime


class ChangesModule:
    """Everything about the change feed."""

    def __init__(self, runtime: Runtime, resources: ResourcesByKind) -> None:
        stack, settings = runtime.stack, runtime.settings.changes
        poller = Poller(
            Feed(stack.tracked, runtime.registry),
            stack.sequencer,
            stack.replicas,
            runtime.time,
            exclusive=stack.tracked.exclusive,
            interval=settings.interval,
        )
        self._runtime = runtime
        self._keep = round(settings.keep * 1_000_000)
        self.watcher = ChangeWatcher(stack.tracked, runtime.time, poller, resources, self._keep)
        self.maintenance = Maintenance(
            sweeps={"replicas": self._drop_gone},
            periodic={"watermark": (settings.interval, stack.sequencer.publish)},
        )

    async def _drop_gone(self) -> None:
        """Drop the rows of processes that no good cursor can name any more."""
        stack = self._runtime.stack
        if not stack.tracked.exclusive:
            await stack.replicas.drop_seen_before(self._runtime.time.now() - 2 * self._keep)
