"""The recorder of either client, for one agent that waits for it."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

from lot_client import AsyncLotClient, LotClient

Flavour = Literal["tasks", "threads"]


class ThreadRecorder:
    """The recorder for threads, with the methods of the one for asyncio.

    It stops its loop while it waits. Its agent has nothing else to do meanwhile.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    @property
    def last_sequence(self) -> int:
        """The last event that was acknowledged."""
        number: int = self._recorder.last_sequence
        return number

    async def record(self, event_type: str, data: dict[str, Any], *, event_time: datetime) -> None:
        """Record an event."""
        self._recorder.record(event_type, data, event_time=event_time)

    async def flush(self) -> int:
        """Wait until all is stored; the last number."""
        number: int = self._recorder.flush()
        return number

    def succeed(self, summary: str) -> None:
        """End as SUCCEEDED."""
        self._recorder.succeed(summary)

    def fail(self, error: str) -> None:
        """End as FAILED."""
        self._recorder.fail(error)

    async def __aenter__(self) -> Self:
        self._recorder.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._recorder.__exit__(kind, error, trace)


class Recorders:
    """Makes the recorders of one agent."""

    def __init__(self, flavour: Flavour, address: str) -> None:
        self.client = AsyncLotClient(address)
        self._threads = LotClient(address) if flavour == "threads" else None

    def make(self, **options: Any) -> Any:
        """A recorder; see `LotClient.recorder`."""
        if self._threads is not None:
            return ThreadRecorder(self._threads.recorder(**options))
        return self.client.recorder(**options)
