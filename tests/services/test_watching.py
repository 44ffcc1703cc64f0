"""Who watches knows in the end what there is, whatever happened in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, Cursor, Positions, ResourceKind
from lot_grpc.domain.errors import CursorTooOldError, LotError, StoreUnavailableError
from lot_grpc.domain.session import SessionMessage
from lot_grpc.ports import Record
from lot_grpc.services.changes.events import ChangeBatch, ChangeEvent, WatchRequest
from lot_grpc.services.changes.feed import short_of
from lot_grpc.services.episodes.event_recorder import Takeover
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.patterns import pattern_from_record
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    decision,
    end,
    error_solution,
    events,
    learning_event,
    memory,
    open_world,
    outcome,
    recall,
    rows,
    save,
    start,
    sweep,
)

WATCHED = REGISTRY.watched
WEEK = 7 * 24 * 3600


@dataclass
class Watcher:
    """One who watches a world, and keeps what was told."""

    batch: Any
    told: list[ChangeEvent] = field(default_factory=list)
    cursor: Cursor | None = None
    heartbeats: int = 0

    async def next(self) -> ChangeBatch:
        """The next piece of news."""
        async with asyncio.timeout(20):
            batch: ChangeBatch = await anext(self.batch)
        self.told += batch.changes
        self.heartbeats += not batch.changes
        self.cursor = batch.cursor
        return batch

    async def until(self, done: Callable[[], bool]) -> None:
        """Watch until something holds of what was told."""
        while not done():
            await self.next()

    async def until_told(self, identity: str) -> None:
        """Watch until a thing was told of."""
        await self.until(lambda: bool(self.types(identity)))

    @property
    def reached(self) -> Positions:
        """Up to where it watched."""
        assert self.cursor is not None
        return self.cursor.positions

    def types(self, identity: str) -> list[ChangeType]:
        """What was told of a thing."""
        return [one.type for one in self.told if one.id == identity]


@asynccontextmanager
async def change_watcher(world: World, **named: Any) -> AsyncIterator[Watcher]:
    named.setdefault("namespace", NS)
    async with aclosing(world.services.changes.watcher.watch(WatchRequest(**named))) as batch:
        watcher = Watcher(batch)
        await watcher.next()  # it comes at once, with a cursor
        assert watcher.told == []
        yield watcher


async def test_what_is_stored_updated_and_deleted_is_told():
    world = await open_world()
    await save(world, "before")
    async with change_watcher(world) as watcher:
        saved = await save(world, "Log in")
        identity = saved.pattern.pattern_id
        await watcher.until(lambda: len(watcher.told) == 1)
        await outcome(world, identity)
        await watcher.until(lambda: len(watcher.told) == 2)
        await world.services.patterns.patterns.delete(NS, identity, "")
        await watcher.until(lambda: len(watcher.told) == 3)
    stored, updated, deleted = watcher.told
    assert [one.type for one in watcher.told] == ["stored", "updated", "deleted"]
    assert {(one.resource_kind, one.id, one.namespace) for one in watcher.told} == {
        (ResourceKind.PATTERN, identity, NS)
    }
    assert stored.thing.content.task == "Log in"
    assert updated.thing.outcomes.usage_count == 1
    assert deleted.thing is None


async def test_every_kind_is_told():
    world = await open_world()
    services = world.services
    async with change_watcher(world) as watcher:
        await save(world)
        await services.memories.memories.create(NS, memory())
        await services.errors.solutions.save(NS, error_solution())
        await services.learning.decisions.record(NS, decision())
        await services.learning.learning_events.record(NS, learning_event())
        await services.preferences.put(NS, PreferenceDraft("k", 1.0))
        said = MessageDraft("s", SessionMessage("user", "hello"))
        await services.sessions.messages.append(NS, said)
        episode = (await services.episodes.creator.start(NS, start())).episode
        await watcher.until(lambda: {one.resource_kind for one in watcher.told} == set(WATCHED))
        assert {one.type for one in watcher.told} == {ChangeType.STORED}
        replica = await services.episodes.recorder.open(NS, episode.episode_id, Takeover.TAKE_OVER)
        await services.episodes.recorder.append(replica, events(1, 3))
        await services.episodes.ender.end(NS, episode.episode_id, end(), "")
        await watcher.until(lambda: len(watcher.types(episode.episode_id)) == 2)
    ended = watcher.told[-1]
    assert (ended.type, ended.thing.event_count) == (ChangeType.UPDATED, 3)


async def test_decisions_and_learning_events_that_were_deleted_are_told():
    world = await open_world()
    services = world.services
    await services.learning.decisions.record(NS, decision(decision_id="d"))
    await services.learning.learning_events.record(NS, learning_event(learning_event_id="l"))
    async with change_watcher(world) as watcher:
        await services.learning.decisions.delete(NS, "d")
        await services.learning.learning_events.delete(NS, "l")
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [(one.resource_kind, one.id, one.type) for one in watcher.told] == [
        (ResourceKind.DECISION, "d", ChangeType.DELETED),
        (ResourceKind.LEARNING_EVENT, "l", ChangeType.DELETED),
    ]


def test_kinds_are_told_from_the_start_in_the_order_in_which_they_are_asked_for():
    assert [resource_kind for resource_kind in ResourceKind if resource_kind in WATCHED] == list(
        WATCHED
    )


async def test_a_session_that_lapsed_is_not_told_and_the_next_of_its_id_is_new():
    world = await open_world()
    said = MessageDraft("s", SessionMessage("user", "hello"), Terms(ttl=1_000_000))
    await world.services.sessions.messages.append(NS, said)
    async with change_watcher(world) as watcher:
        world.clock.advance(2)
        await world.services.sessions.messages.append(NS, said)
        await watcher.until(lambda: bool(watcher.told))
    assert {(one.type, one.id) for one in watcher.told} == {(ChangeType.STORED, "s")}


async def test_events_of_an_episode_are_no_changes():
    world = await open_world()
    episode = (await world.services.episodes.creator.start(NS, start())).episode
    async with change_watcher(world) as watcher:
        replica = await world.services.episodes.recorder.open(
            NS, episode.episode_id, Takeover.TAKE_OVER
        )
        await world.services.episodes.recorder.append(replica, events(1, 50))
        await save(world)
        await watcher.until(lambda: bool(watcher.told))
    assert [one.resource_kind for one in watcher.told] == [ResourceKind.PATTERN]


async def test_only_the_namespace_the_kinds_and_the_types_asked_for_are_told():
    world = await open_world()
    await save(world, "there before")
    async with (
        change_watcher(world, resource_kinds=(ResourceKind.MEMORY,)) as memories,
        change_watcher(world, types=frozenset({ChangeType.DELETED})) as deletes,
        change_watcher(world, namespace="other") as other,
    ):
        saved = await save(world, "Log in")
        await world.services.memories.memories.create(NS, memory())
        await world.services.patterns.patterns.delete(NS, saved.pattern.pattern_id, "")
        await world.services.memories.memories.create("other", memory())
        await memories.until(lambda: bool(memories.told))
        await deletes.until(lambda: bool(deletes.told))
        await other.until(lambda: bool(other.told))
    assert [one.resource_kind for one in memories.told] == [ResourceKind.MEMORY]
    assert [one.type for one in deletes.told] == [ChangeType.DELETED]
    assert [one.namespace for one in other.told] == ["other"]


async def test_payloads_are_left_out_if_not_asked_for():
    world = await open_world()
    async with change_watcher(world, payload=False) as watcher:
        await save(world)
        await watcher.until(lambda: bool(watcher.told))
    assert watcher.told[0].thing is None
    assert watcher.told[0].type is ChangeType.STORED


async def test_a_watch_goes_on_behind_any_cursor():
    world = await open_world()
    async with change_watcher(world) as first:
        for number in range(5):
            await save(world, f"task {number}")
        await first.until(lambda: len(first.told) == 5)
    for place, one in enumerate(first.told):
        again = world.another_process()
        async with change_watcher(again, cursor=one.cursor) as later:
            last = (await save(again, f"later {place}")).pattern.pattern_id
            await later.until_told(last)
        ids = [told.id for told in later.told]
        assert ids[: 4 - place] == [told.id for told in first.told[place + 1 :]]
        assert one.id not in ids


async def test_what_happened_while_nobody_watched_is_told_in_its_present_state():
    world = await open_world()
    kept = (await save(world, "kept")).pattern.pattern_id
    gone = (await save(world, "gone")).pattern.pattern_id
    async with change_watcher(world) as first:
        pass
    for _ in range(3):
        await outcome(world, kept)
    await world.services.patterns.patterns.delete(NS, gone, "")
    new = (await save(world, "new")).pattern.pattern_id
    await outcome(world, new)
    brief = (await save(world, "brief")).pattern.pattern_id
    await world.services.patterns.patterns.delete(NS, brief, "")
    again = world.another_process()
    async with change_watcher(again, cursor=first.cursor) as later:
        await later.until(lambda: len(later.told) >= 4)
    assert [(one.id, one.type) for one in later.told] == [
        (kept, "updated"),
        (gone, "deleted"),
        (new, "stored"),  # new to the watcher, though it was used since
        (brief, "deleted"),
    ]
    assert later.told[0].thing.outcomes.usage_count == 3


async def test_what_is_deleted_and_stored_again_ends_as_stored():
    world = await open_world()
    async with change_watcher(world) as first:
        pass
    await save(world, "one", pattern_id="p", dedupe=Dedupe.NONE)
    await world.services.patterns.patterns.delete(NS, "p", "")
    await save(world, "two", pattern_id="p", dedupe=Dedupe.NONE)
    async with change_watcher(world, cursor=first.cursor) as later:
        await save(world, "last", pattern_id="last", dedupe=Dedupe.NONE)
        await later.until(lambda: later.told[-1:] != [] and later.told[-1].id == "last")
    assert later.types("p") == [ChangeType.STORED]
    assert later.told[0].thing.content.task == "two"


async def test_from_the_start_all_that_is_there_is_told_and_then_what_changes():
    world = await open_world()
    for number in range(250):
        await save(world, f"task {number}")
    await world.services.memories.memories.create(NS, memory())
    async with change_watcher(world, from_start=True) as watcher:
        await watcher.next()
        saved = await save(world, "while it is told")
        await watcher.until(lambda: watcher.cursor is not None and watcher.cursor.scan is None)
        later = await save(world, "afterwards")
        await watcher.until(lambda: watcher.told[-1].id == later.pattern.pattern_id)
    assert len({one.id for one in watcher.told}) == 253
    assert saved.pattern.pattern_id in {one.id for one in watcher.told}
    assert {one.type for one in watcher.told} == {ChangeType.STORED}


async def test_a_watch_from_the_start_goes_on_in_its_midst():
    world = await open_world()
    for number in range(230):
        await save(world, f"task {number}")
    for number in range(3):
        await world.services.memories.memories.create(NS, memory(f"fact {number}"))
    async with change_watcher(world, from_start=True) as whole:
        await whole.until(lambda: len(whole.told) == 233)
        await whole.next()
    for place in (0, 1, 2, 50, 101, 102, 103, 232):
        async with change_watcher(world, cursor=whole.told[place].cursor) as rest:
            await rest.until(lambda: rest.cursor is not None and rest.cursor.scan is None)
        assert [one.id for one in rest.told] == [one.id for one in whole.told[place + 1 :]]


async def test_an_extracted_pattern_is_told_as_learned():
    world = await open_world()
    async with change_watcher(world) as watcher:
        await save(world, "by hand")
        await save(world, "from episodes", source_episode_ids=("e1", "e2"))
        await watcher.until(lambda: len(watcher.told) == 2)
    assert [one.type for one in watcher.told] == ["stored", "pattern_learned"]


async def test_a_recall_is_told_to_those_who_watch_just_then():
    world = await open_world()
    saved = await save(world, "Log in to the site")
    async with change_watcher(world) as watcher, change_watcher(world, namespace="other") as other:
        answer = await recall(world, "Log in to the site")
        await watcher.until(lambda: bool(watcher.told))
        await world.services.memories.memories.create("other", memory())
        await other.until(lambda: bool(other.told))
    [match] = watcher.told
    assert (match.type, match.cursor) == (ChangeType.PATTERN_MATCHED, None)
    assert match.thing.pattern_id == saved.pattern.pattern_id
    assert match.thing.retrieval_id == answer.retrieval_id
    assert match.thing.similarity == pytest.approx(1)
    assert [one.resource_kind for one in other.told] == [ResourceKind.MEMORY]


async def test_heartbeats_move_the_cursor():
    world = await open_world()
    async with change_watcher(world, heartbeat=0.05) as watcher:
        before = watcher.reached
        await save(world, "elsewhere", tags=("t",))
        await world.services.memories.memories.create("other", memory())
        await watcher.until(lambda: watcher.heartbeats > 2)
    assert watcher.reached != before


# --- cursors that cannot be gone on from ------------------------------------------------------


async def test_a_cursor_that_is_too_old_says_so():
    clock = FixedClock()
    world = await open_world(clock=clock)
    async with change_watcher(world) as watcher:
        pass
    clock.advance(WEEK - 1)
    async with change_watcher(world, cursor=watcher.cursor):
        pass
    clock.advance(2)
    with pytest.raises(CursorTooOldError, match="older than"):
        async with change_watcher(world, cursor=watcher.cursor):
            pass


async def test_a_cursor_of_another_store_says_so():
    async with change_watcher(await open_world()) as watcher:
        pass
    with pytest.raises(CursorTooOldError, match="another store"):
        async with change_watcher(await open_world(), cursor=watcher.cursor):
            pass


async def test_a_store_that_fails_ends_the_watch_and_the_next_goes_on():
    world = await open_world()
    inner = world.store.scroll
    failing: list[int] = []

    async def scroll(collection: str, *given: Any, **named: Any) -> list[Record]:
        if failing:
            raise StoreUnavailableError("gone")
        found: list[Record] = await inner(collection, *given, **named)
        return found

    world.store.scroll = scroll
    async with change_watcher(world) as watcher:
        failing.append(1)
        await save(world, "Log in")
        with pytest.raises(LotError, match="gone"):
            await watcher.until(lambda: bool(watcher.told))
    failing.clear()
    async with change_watcher(world, cursor=watcher.cursor) as again:
        await again.until(lambda: bool(again.told))
    assert again.told[0].thing.content.task == "Log in"


async def test_nobody_is_left_when_all_have_gone():
    world = await open_world()
    before = asyncio.all_tasks()
    async with change_watcher(world), change_watcher(world):
        assert len(asyncio.all_tasks()) > len(before)
    assert asyncio.all_tasks() == before


# --- several processes ------------------------------------------------------------------------


async def shared() -> tuple[World, World]:
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    other = world.another_process()
    await other.services.runtime.stack.sequencer.open()
    return world, other


async def test_what_another_process_changed_is_told_once_it_has_settled():
    world, other = await shared()
    async with change_watcher(world) as watcher:
        saved = await save(other, "over there")
        await save(world, "here")
        await watcher.until(lambda: len(watcher.told) == 1)
        await other.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: len(watcher.told) == 2)
    assert watcher.told[1].id == saved.pattern.pattern_id


async def test_what_a_dead_process_left_is_told_after_a_while():
    world, other = await shared()
    async with change_watcher(world) as watcher:
        saved = await save(other, "its last words")
        world.clock.advance(60)
        await save(world, "here")
        await watcher.until(lambda: len(watcher.told) == 1)
        world.clock.advance(61)
        await watcher.until(lambda: len(watcher.told) == 2)
    assert watcher.told[1].id == saved.pattern.pattern_id


async def test_a_process_that_was_thought_dead_goes_on_under_another_id():
    world, other = await shared()
    first = other.services.runtime.stack.sequencer.writer_id
    await save(other, "one")
    async with change_watcher(world) as watcher:
        world.clock.advance(600)  # its machine slept
        saved = await save(other, "two")
        assert other.services.runtime.stack.sequencer.writer_id != first
        await other.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: saved.pattern.pattern_id in [one.id for one in watcher.told])


async def test_rows_of_processes_that_are_long_gone_are_dropped():
    world, other = await shared()
    await save(other, "one")
    world.clock.advance(2 * WEEK + 1)
    await world.services.runtime.stack.sequencer.publish()
    await sweep(world)
    left = await rows(world.store, "change_writers", None)
    assert [row.payload["writer_id"] for row in left] == [
        world.services.runtime.stack.sequencer.writer_id
    ]


# --- whatever happens -------------------------------------------------------------------------


@dataclass
class Busy:
    """What a world does at random, and which things it touched."""

    world: World
    random: random.Random
    touched: dict[str, int]
    step: int = 0

    async def act(self) -> None:
        services, pick = self.world.services, self.random.choice
        self.step += 1
        identity = f"p{self.random.randrange(6)}"
        kind = pick(["save", "save", "outcome", "edit", "delete", "memory", "forget", "episode"])
        try:
            if kind == "save":
                await save(
                    self.world, f"{identity} v{self.step}", pattern_id=identity, dedupe=Dedupe.NONE
                )
            elif kind == "outcome":
                await outcome(self.world, identity)
            elif kind == "edit":
                pattern = await services.patterns.patterns.get(NS, identity)
                content = replace(pattern.content, title=f"v{self.step}")
                edit = PatternEdit(content, frozenset({"title"}))
                await services.patterns.patterns.update(NS, identity, edit, "")
            elif kind == "delete":
                await services.patterns.patterns.delete(NS, identity, "")
            elif kind == "memory":
                identity = identity.replace("p", "m")
                await services.memories.memories.create(
                    NS, memory(f"v{self.step}", memory_id=identity)
                )
            elif kind == "forget":
                identity = identity.replace("p", "m")
                await services.memories.memories.delete(NS, identity, "")
            else:
                identity = f"e{self.random.randrange(3)}"
                await services.episodes.creator.start(NS, start(episode_id=identity))
                await services.episodes.ender.end(NS, identity, end(), "")
        except LotError:
            return  # it is not there, or there already
        self.touched[identity] = self.step


async def replayed(world: World, told: list[ChangeEvent]) -> None:
    """What was told comes to what there is."""
    known: dict[tuple[str | None, str], Any] = {}
    for one in told:
        if one.type is ChangeType.DELETED:
            known.pop((one.resource_kind, one.id), None)
        elif one.cursor is not None:
            known[one.resource_kind, one.id] = one.thing
    there = {
        (resource_kind, record.payload[watched.id_key]): record
        for resource_kind, watched in WATCHED.items()
        for record in await rows(world.store, watched.collection.name)
    }
    assert known.keys() == there.keys()
    for (resource_kind, identity), thing in known.items():
        if resource_kind is ResourceKind.PATTERN:
            assert thing == pattern_from_record(there[resource_kind, identity])


@pytest.mark.parametrize("seed", one_in(3, range(12)))
@pytest.mark.parametrize("processes", [1, 2])
async def test_a_watcher_that_comes_and_goes_knows_all(seed, processes):
    clock, chance = FixedClock(), random.Random(seed)
    store: Any = InMemoryStore(clock) if processes == 1 else SharedStore(clock)
    world = await open_world(Interleaving(store, seed), clock)
    worlds = [world, *(world.another_process() for _ in range(processes - 1))]
    touched: dict[str, int] = {}
    busy = [Busy(one, chance, touched) for one in worlds]
    told: list[ChangeEvent] = []
    async with change_watcher(world) as watcher:
        cursor = watcher.cursor
    for _ in range(8):
        async with change_watcher(world, cursor=cursor) as watcher:
            for one in busy:
                for _ in range(chance.randrange(8)):
                    await one.act()
                await one.world.services.runtime.stack.sequencer.publish()
            for _ in range(chance.randrange(3)):
                with_timeout = asyncio.wait_for(anext(watcher.batch), 0.3)
                try:
                    batch = await with_timeout
                except TimeoutError:
                    break
                watcher.told += batch.changes
        seen = [one for one in watcher.told if one.cursor is not None]
        if seen:  # it dies somewhere in the midst of what it was told
            seen = seen[: chance.randrange(len(seen)) + 1]
            cursor = seen[-1].cursor
            told += seen
    async with change_watcher(world, cursor=cursor) as watcher:
        last = (await save(world, "the last")).pattern.pattern_id
        for each in worlds:
            await each.services.runtime.stack.sequencer.publish()
        await watcher.until(lambda: last in [one.id for one in watcher.told])
        ends = await world.services.changes.watcher._poller.ends()
        await save(world, "and one more")
        await watcher.until(lambda: not short_of(watcher.reached, ends))
        await watcher.until(lambda: watcher.told[-1].thing.content.task == "and one more")
    told += watcher.told
    await replayed(world, told)
    assert touched.keys() <= {one.id for one in told}
