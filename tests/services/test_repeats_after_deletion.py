"""A repeat whose record is gone and whose id another one took: never answered with that other one,
nor counted for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from lot_grpc.domain.errors import InUseError, NotFoundError
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.kernel.idempotency import IdempotencyKey, IdempotencyRecord, IdempotencyStore
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import (
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    LEARNING_EVENTS,
    MEMORIES,
    PATTERNS,
    PREFERENCES,
)
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import SECOND, FixedClock
from tests.services.world import (
    NS,
    World,
    decision,
    draft,
    end,
    error_solution,
    event,
    judgement,
    learning_event,
    memory,
    of_pattern,
    open_world,
    payloads,
    start,
    whole,
)

TTL = 60 * SECOND

Call = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True)
class Kind:
    """A record of id ``x``: how to create it with a content, for a request, and to delete it."""

    collection: str
    create: Callable[[World, str, str], Awaitable[Any]]
    delete: Call
    expires: bool = False


def _pattern(world: World, content: str, request_id: str) -> Awaitable[Any]:
    ttl = TTL if content == "first" else None
    given = draft(content, pattern_id="x", request_id=request_id, ttl=ttl, dedupe=Dedupe.NONE)
    return world.services.patterns.writer.save(NS, given)


def _memory(world: World, content: str, request_id: str) -> Awaitable[Any]:
    ttl = TTL if content == "first" else None
    return world.services.memories.memories.create(
        NS, memory(content, memory_id="x", request_id=request_id, ttl=ttl)
    )


def _solution(world: World, content: str, request_id: str) -> Awaitable[Any]:
    ttl = TTL if content == "first" else None
    given = error_solution(content, error_solution_id="x", request_id=request_id, ttl=ttl)
    return world.services.errors.solutions.save(NS, given)


def _decision(world: World, content: str, request_id: str) -> Awaitable[Any]:
    given = decision(content, decision_id="x", request_id=request_id)
    return world.services.learning.decisions.record(NS, given)


def _event(world: World, content: str, request_id: str) -> Awaitable[Any]:
    given = learning_event(content, learning_event_id="x", request_id=request_id)
    return world.services.learning.learning_events.record(NS, given)


def _start(world: World, content: str, request_id: str) -> Awaitable[Any]:
    return world.services.episodes.creator.start(NS, start(content, "x", request_id=request_id))


def _record(world: World, content: str, request_id: str) -> Awaitable[Any]:
    count = 3 if content == "first" else 2
    return world.services.episodes.creator.record(NS, whole(count, "x", request_id))


def _preference(world: World, content: str, request_id: str) -> Awaitable[Any]:
    return world.services.preferences.put(NS, PreferenceDraft("x", content, request_id=request_id))


KINDS = {
    "pattern": Kind(
        PATTERNS, _pattern, lambda world: world.services.patterns.patterns.delete(NS, "x", ""), True
    ),
    "memory": Kind(
        MEMORIES, _memory, lambda world: world.services.memories.memories.delete(NS, "x", ""), True
    ),
    "error solution": Kind(
        ERROR_SOLUTIONS,
        _solution,
        lambda world: world.services.errors.solutions.delete(NS, "x"),
        True,
    ),
    "decision": Kind(
        DECISIONS, _decision, lambda world: world.services.learning.decisions.delete(NS, "x")
    ),
    "learning event": Kind(
        LEARNING_EVENTS,
        _event,
        lambda world: world.services.learning.learning_events.delete(NS, "x"),
    ),
    "started episode": Kind(
        EPISODES, _start, lambda world: world.services.episodes.episodes.delete_with_events(NS, "x")
    ),
    "recorded episode": Kind(
        EPISODES,
        _record,
        lambda world: world.services.episodes.episodes.delete_with_events(NS, "x"),
    ),
    "preference": Kind(
        PREFERENCES,
        _preference,
        lambda world: world.services.preferences.delete(NS, "x"),
    ),
}


async def _outcome(world: World) -> Any:
    given = OutcomeDraft(("x",), Outcome.SUCCESS, request_id="r")
    return (await world.services.outcomes.recorder.record(NS, given)).patterns


async def _error_outcome(world: World) -> Any:
    given = ErrorOutcomeDraft("x", Outcome.SUCCESS, request_id="r")
    return await world.services.outcomes.of_errors.record(NS, given)


async def _feedback(world: World) -> Any:
    return await world.services.patterns.feedback.give(
        NS, FeedbackDraft("x", helpful=True, request_id="r")
    )


async def _decision_outcome(world: World) -> Any:
    given = DecisionOutcomeDraft("x", Outcome.SUCCESS, request_id="r")
    return await world.services.learning.decisions.record_outcome(NS, given)


async def _judge(kind: TargetKind, world: World) -> Any:
    given = judgement(kind, "x", reward=1.0, request_id="r")
    await world.services.learning.feedback_handler.submit(NS, given)
    return []


async def _judge_pattern(world: World) -> Any:
    return await _judge(TargetKind.PATTERN, world)


async def _judge_decision(world: World) -> Any:
    return await _judge(TargetKind.DECISION, world)


async def _end(world: World) -> Any:
    return await world.services.episodes.ender.end(NS, "x", end(), "r")


async def _record_event(world: World) -> Any:
    return await world.services.episodes.recorder.record_event(NS, "x", event(), "r")


USES: dict[str, tuple[str, Call]] = {
    "outcome": ("pattern", _outcome),
    "error outcome": ("error solution", _error_outcome),
    "feedback": ("pattern", _feedback),
    "decision outcome": ("decision", _decision_outcome),
    "judgement of a pattern": ("pattern", _judge_pattern),
    "judgement of a decision": ("decision", _judge_decision),
    "end": ("started episode", _end),
    "event": ("started episode", _record_event),
}


async def _all(world: World, kind: Kind) -> list[Any]:
    return [await payloads(world, kind.collection), await payloads(world, EVENTS)]


async def _take_again(world: World, kind: Kind, how: str) -> list[Any]:
    """Let the record go, if it is there, and another one take its id; what is stored then."""
    world.clock.advance(1)
    if how == "expired":
        world.clock.advance(2 * TTL / SECOND)
    else:
        with suppress(NotFoundError):
            await kind.delete(world)
    world.clock.advance(1)
    await kind.create(world, "second", "")
    return await _all(world, kind)


def _ways(kind: Kind) -> list[str]:
    return ["deleted", "expired"] if kind.expires else ["deleted"]


CREATED = [(name, how) for name, kind in KINDS.items() for how in _ways(kind)]
USED = [(name, how) for name, (kind, _) in USES.items() for how in _ways(KINDS[kind])]


@pytest.mark.parametrize(("name", "how"), CREATED)
async def test_a_repeat_of_a_create_is_not_answered_with_the_next_record_of_its_id(
    world, name, how
):
    kind = KINDS[name]
    await kind.create(world, "first", "r")
    before = await _take_again(world, kind, how)
    for _ in range(2):
        with pytest.raises(NotFoundError, match=r"deleted after this request"):
            await kind.create(world, "first", "r")
    assert await _all(world, kind) == before


@pytest.mark.parametrize("name", KINDS)
async def test_a_repeat_still_finds_what_was_edited_or_read_since(world, name):
    """And the record that a first try met under its id is the one that a repeat finds."""
    kind = KINDS[name]
    await kind.create(world, "first", "other")
    world.clock.advance(1)
    await kind.create(world, "first", "r")
    world.clock.advance(1)
    before = await _all(world, kind)
    await kind.create(world, "first", "r")
    await kind.create(world, "first", "other")
    assert await _all(world, kind) == before


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("name", [name for name in KINDS if name != "preference"])
async def test_a_create_that_died_is_not_answered_with_the_next_record_of_its_id(name, when):
    kind = KINDS[name]
    for write in range(1, 9):
        world = await _mortal(write, when, lambda world: kind.create(world, "first", "r"))
        if world is None:
            break
        written = bool(await payloads(world, kind.collection))
        before = await _take_again(world, kind, "deleted")
        with pytest.raises(NotFoundError if written else InUseError):
            await kind.create(world, "first", "r")
        assert await _all(world, kind) == before, (write, when)
    assert write > 2


@pytest.mark.parametrize(("name", "how"), USED)
async def test_a_repeat_is_not_counted_for_the_next_record_of_its_id(world, name, how):
    used, use = USES[name]
    kind = KINDS[used]
    await kind.create(world, "first", "")
    world.clock.advance(1)
    await use(world)
    before = await _take_again(world, kind, how)
    for _ in range(2):
        await _nothing_of_another(use, world)
    assert await _all(world, kind) == before


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("name", USES)
async def test_what_died_is_not_counted_for_the_next_record_of_its_id(name, when):
    used, use = USES[name]
    kind = KINDS[used]
    for write in range(1, 9):
        world = await _mortal(write, when, use, lambda world: kind.create(world, "first", ""))
        if world is None:
            break
        before = await _take_again(world, kind, "deleted")
        if write == 1 and when is When.BEFORE:
            continue  # nothing was written down: to the server it is a new request
        await world.services.housekeeping.roll_forward(starting=True)
        await _nothing_of_another(use, world)
        assert await _all(world, kind) == before, (write, when)
    assert write > 2


@pytest.mark.parametrize(
    "name", [name for name in USES if name not in ("decision outcome", "end", "event")]
)
async def test_a_repeat_at_once_is_not_counted_for_the_next_record_of_its_id(
    world, name, monkeypatch
):
    """It has not seen the first try's row, and reads the record once another one has the id."""
    used, use = USES[name]
    kind = KINDS[used]
    await kind.create(world, "first", "")
    before: list[Any] = []

    async def meanwhile(
        idempotency: IdempotencyStore, ask: IdempotencyKey
    ) -> IdempotencyRecord | None:
        entry = await find(idempotency, ask)
        monkeypatch.setattr(IdempotencyStore, "find", find)
        await use(world)
        before.extend(await _take_again(world, kind, "deleted"))
        return entry

    find = IdempotencyStore.find
    monkeypatch.setattr(IdempotencyStore, "find", meanwhile)
    await _nothing_of_another(use, world)
    assert before
    assert await _all(world, kind) == before


async def test_a_repeated_correction_does_not_give_another_pattern(world):
    kind = KINDS["pattern"]
    await kind.create(world, "first", "")
    await _outcome(world)
    logged = await world.services.outcomes.log.list_page(NS, of_pattern("x"), 10, None)
    given = CorrectionDraft(logged.items[0].recorded.outcome_id, request_id="r")
    world.clock.advance(1)
    [corrected] = (await world.services.outcomes.log.correct(NS, given)).patterns
    assert (await world.services.outcomes.log.correct(NS, given)).patterns == [corrected]
    await _take_again(world, kind, "deleted")
    assert (await world.services.outcomes.log.correct(NS, given)).patterns == []


async def _nothing_of_another(use: Call, world: World) -> None:
    """A repeat is refused, or answers without the record that has the id now."""
    with suppress(NotFoundError):
        assert await use(world) == []


async def _mortal(write: int, when: When, first: Call, prepare: Call | None = None) -> World | None:
    """The world after ``first`` died at a write; None if it has fewer."""
    clock = FixedClock()
    world = await open_world(InMemoryStore(clock), clock)
    if prepare is not None:
        await prepare(world)
    world.clock.advance(1)
    store = FaultInjectingStore(world.store)
    dying = await open_world(store, clock)
    store.fail_at(write, when)
    try:
        await first(dying)
    except InjectedFault:
        return world
    return None
