"""Drives both clients alike, so that one test serves both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

from lot_client import AsyncLotClient, LotClient, Recorder

Either = Callable[..., AbstractAsyncContextManager[Any]]


def of_tasks(address: str, **settings: Any) -> AbstractAsyncContextManager[AsyncLotClient]:
    """The client for asyncio as it is."""
    return AsyncLotClient(address, **settings)


@asynccontextmanager
async def of_threads(address: str, **settings: Any) -> AsyncIterator[Threads]:
    """The client for threads, each call in a thread."""
    with LotClient(address, **settings) as client:
        yield Threads(client)


class Threads:
    """A `LotClient` with the methods of an `AsyncLotClient` that recording needs."""

    def __init__(self, client: LotClient) -> None:
        self._client = client

    def recorder(self, *arguments: Any, **options: Any) -> ThreadsRecorder:
        return ThreadsRecorder(self._client.recorder(*arguments, **options))

    def using(self, **settings: Any) -> Threads:
        return Threads(self._client.using(**settings))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def save_pattern(self, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self._client.save_pattern, *arguments, **options)

    async def delete_pattern(self, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self._client.delete_pattern, *arguments, **options)

    async def call(self, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self._client.call, *arguments, **options)

    async def end_episode(self, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self._client.end_episode, *arguments, **options)

    def replay_episode(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        return each(iter(self._client.replay_episode(*arguments, **options)))

    def watch_changes(self, **options: Any) -> ThreadsWatch:
        return ThreadsWatch(self._client.watch_changes(**options))

    async def analyze_failures(self, **options: Any) -> Any:
        return await asyncio.to_thread(self._client.analyze_failures, **options)


class ThreadsRecorder:
    """A `Recorder` with the methods of an `AsyncRecorder`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def record(self, *arguments: Any, **options: Any) -> None:
        await asyncio.to_thread(self._recorder.record, *arguments, **options)

    async def flush(self, *arguments: Any) -> int:
        return await asyncio.to_thread(self._recorder.flush, *arguments)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._recorder.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._recorder.__exit__, kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)


class ThreadsWatch:
    """A `ChangeWatch` with the methods of an `AsyncChangeWatch`."""

    def __init__(self, watch: Any) -> None:
        self._watch = watch

    def __aiter__(self) -> AsyncIterator[Any]:
        return each(iter(self._watch))

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._watch.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._watch.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch, name)


async def leave_by(
    either: Either,
    address: str,
    error: BaseException,
    word: Callable[[Any], None] = lambda _: None,
    **options: Any,
) -> None:
    """Record, say something, and fail."""
    async with (
        either(address) as client,
        client.recorder("A task", **options) as recorder,
    ):
        await recorder.record("step")
        word(recorder)
        raise error


async def each(items: Any) -> AsyncIterator[Any]:
    """Items that a thread waits for, one by one."""
    end = object()
    while (item := await asyncio.to_thread(next, items, end)) is not end:
        yield item


async def until(done: Callable[[], bool]) -> None:
    """Wait for what nothing tells of."""
    while not done():  # noqa: ASYNC110 - it happens in another thread or process
        await asyncio.sleep(0.01)
