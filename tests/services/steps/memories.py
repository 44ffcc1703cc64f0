"""Steps with memories, error solutions, preferences and sessions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lot_grpc.domain.errors import (
    ErrorSolutionNotFoundError,
    MemoryNotFoundError,
    PreferenceNotFoundError,
    SessionNotFoundError,
)
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.domain.session import SessionMessage
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import ERROR_SOLUTIONS
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft
from tests.services.steps.base import Step
from tests.services.world import World, error_solution, memory


async def a_memory(world: World, ns: str) -> None:
    await world.services.memories.memories.create(ns, memory("first", memory_id="m"))


async def two_error_solutions(world: World, ns: str) -> None:
    """One that nobody named, and ``s``."""
    await world.services.errors.solutions.save(ns, error_solution())
    await world.services.errors.solutions.save(ns, error_solution(error_solution_id="s"))


async def deletes_memory(world: World, ns: str) -> None:
    with suppress(MemoryNotFoundError):
        await world.services.memories.memories.delete(ns, "m", "")


async def deletes_error_solution(world: World, ns: str) -> None:
    with suppress(ErrorSolutionNotFoundError):
        await world.services.errors.solutions.delete(ns, "s")


def creates(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.memories.memories.create(ns, memory("new", **named))

    return run


LONG = "A sentence of some words. " * 200


def creates_many(*, with_requests: bool) -> Step:
    async def run(world: World, ns: str) -> Any:
        contents = ("a", LONG, "c")
        drafts = [
            memory(content, request_id=f"r{n}" if with_requests else "")
            for n, content in enumerate(contents)
        ]
        return await world.services.memories.memories.create_many(ns, drafts)

    return run


VERY_LONG = LONG * 5
"""More passages than are embedded while a caller waits."""


async def indexes(world: World) -> None:
    """Until nothing is left, as the server does it, in a task of its own."""
    for _ in range(2):
        await asyncio.create_task(world.services.memories.indexing.step())


async def a_very_long_memory(world: World, ns: str) -> None:
    """``m``, indexed."""
    await world.services.memories.memories.create(ns, memory(VERY_LONG, memory_id="m"))
    await indexes(world)


def creates_and_indexes(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        await world.services.memories.memories.create(ns, memory(VERY_LONG, **named))
        await indexes(world)

    return run


async def edits_and_indexes(world: World, ns: str) -> None:
    await edits_memory(content=f"Another beginning. {VERY_LONG}")(world, ns)
    await indexes(world)


async def long_memories(world: World, ns: str) -> None:
    """``m``, ``long`` and one that is pinned."""
    await a_memory(world, ns)
    await world.services.memories.memories.create(ns, memory(LONG, memory_id="long"))
    await world.services.memories.memories.create(ns, memory("kept", memory_id="p", pinned=True))


def edits_memory(**changes: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        content = replace(MemoryContent(LONG), **changes)
        edit = MemoryEdit(content, frozenset(changes))
        return await world.services.memories.memories.update(ns, "m", edit, "")

    return run


def deletes_memories(world: World, ns: str) -> Any:
    asked = MemoryFilter(max_importance=0.6)
    return world.services.memories.bulk_deleter.delete(ns, asked, dry_run=False)


def solves(message: str, **named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.errors.solutions.save(ns, error_solution(message, **named))

    return run


async def used_error_solutions(world: World, ns: str) -> None:
    """Two error solutions, both used."""
    await two_error_solutions(world, ns)
    for outcome in (Outcome.FAILURE, Outcome.PARTIAL):
        await helps("", outcome)(world, ns)
    (other,) = [
        record.payload["error_solution_id"]
        for record in await world.store.scroll(ERROR_SOLUTIONS, ns, [], limit=10)
        if record.payload["error_solution_id"] != "s"
    ]
    used = ErrorOutcomeDraft(other, Outcome.SUCCESS, duration=3.0)
    await world.services.outcomes.of_errors.record(ns, used)


def helps(request_id: str, outcome: Outcome = Outcome.SUCCESS) -> Step:
    async def run(world: World, ns: str) -> Any:
        tried_on = "KeyError: 'c'"
        given = ErrorOutcomeDraft("s", outcome, error_message=tried_on, request_id=request_id)
        return await world.services.outcomes.of_errors.record(ns, given)

    return run


async def two_preferences(world: World, ns: str) -> None:
    """``k``, which had two values before, and ``other``."""
    for key, value in (("k", "first"), ("k", "second"), ("k", "third"), ("other", None)):
        await world.services.preferences.put(ns, PreferenceDraft(key, value))


def prefers(key: str, value: Any, request_id: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        given = PreferenceDraft(key, value, request_id=request_id)
        return await world.services.preferences.put(ns, given)

    return run


async def deletes_preference(world: World, ns: str) -> None:
    with suppress(PreferenceNotFoundError):
        await world.services.preferences.delete(ns, "k")


async def a_session(world: World, ns: str) -> None:
    """``s`` with a full window of three messages, and two values."""
    for number in range(4):
        await says(f"before {number}", max_messages=3)(world, ns)
    for key in ("a", "b"):
        await world.services.sessions.values.put(ns, "s", key, b"before")


async def a_lapsed_session(world: World, ns: str) -> None:
    await a_session(world, ns)
    await world.services.sessions.values.put(ns, "s", "a", b"last", 1_000_000)
    world.clock.advance(120)


def says(content: str, request_id: str = "", max_messages: int = 0) -> Step:
    async def run(world: World, ns: str) -> Any:
        message = SessionMessage("user", content)
        given = MessageDraft("s", message, Terms(max_messages), request_id)
        return await world.services.sessions.messages.append(ns, given)

    return run


async def puts_session_value(world: World, ns: str) -> None:
    await world.services.sessions.values.put(ns, "s", "a", b"new")


def clears_session(*keys: str, **named: Any) -> Step:
    async def run(world: World, ns: str) -> None:
        with suppress(SessionNotFoundError):
            await world.services.sessions.sessions.clear(ns, "s", keys, **named)

    return run


async def sweeps_sessions(world: World, ns: str) -> None:
    await world.services.sessions.sessions.sweep()
