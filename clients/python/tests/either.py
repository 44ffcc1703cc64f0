"""Drives both clients alike, so that one test serves both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from inspect import iscoroutinefunction, ismethod
from typing import Any, Self

from lot_client import (
    AsyncChangeWatch,
    AsyncEventStream,
    AsyncLotClient,
    AsyncRecorder,
    ChangeWatch,
    EventStream,
    LotClient,
    Recorder,
)

Either = Callable[..., AbstractAsyncContextManager[Any]]

TWINS = {
    LotClient: AsyncLotClient,
    Recorder: AsyncRecorder,
    EventStream: AsyncEventStream,
    ChangeWatch: AsyncChangeWatch,
}


def of_tasks(address: str, **settings: Any) -> AsyncLotClient:
    """The client for asyncio as it is."""
    return AsyncLotClient(address, **settings)


def of_threads(address: str, **settings: Any) -> InThreads:
    """The client for threads, each call in a thread."""
    return InThreads(LotClient(address, **settings))


class InThreads:
    """An object for threads with the methods of its twin for asyncio; what waits has a thread."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not ismethod(found):
            return found
        if iscoroutinefunction(getattr(TWINS[type(self._inner)], name)):
            return lambda *arguments, **options: asyncio.to_thread(found, *arguments, **options)
        return lambda *arguments, **options: in_threads(found(*arguments, **options))

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._inner.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._inner.__exit__, *error)

    def __aiter__(self) -> AsyncIterator[Any]:
        return each(self._inner)


def in_threads(value: Any) -> Any:
    """What a method that does not wait returned."""
    if type(value) in TWINS:
        return InThreads(value)
    return each(value) if isinstance(value, Iterator) else value


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
