"""Who watches knows in the end what there is, whatever happened in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import CursorExpiredError, LotError, StoreUnavailableError
from lot_grpc.domain.session import SessionMessage
from lot_grpc.ports import Record
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft
from tests.contract.clock import FixedClock
from tests.services.watching import WATCHED, WEEK, change_watcher
from tests.services.world import (
    NS,
    decision,
    end,
    error_solution,
    events,
    learning_event,
    memory,
    open_world,
    outcome,
    recall,
    save,
    start,
)


async def test_what_is_stored_updated_and_deleted_is_told():
    world = await open_world()
    await save(world, "before")
    async with change_watcher(world) as watcher:
        saved = await save(world, "Log in")
        identity = saved.pattern.pattern_id
        await watcher.until(lambda: len(watcher.events) == 1)
        await outcome(world, identity)
        await watcher.until(lambda: len(watcher.events) == 2)
        await world.services.patterns.patterns.delete(NS, identity, "")
        await watcher.until(lambda: len(watcher.events) == 3)
    stored, updated, deleted = watcher.events
    assert [one.type for one in watcher.events] == ["stored", "updated", "deleted"]
    assert {(one.resource_kind, one.id, one.namespace) for one in watcher.events} == {
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
        await watcher.until(lambda: {one.resource_kind for one in watcher.events} == set(WATCHED))
        assert {one.type for one in watcher.events} == {ChangeType.STORED}
        replica = await services.episodes.recorder.open(
            NS, episode.episode_id, TakeoverPolicy.REPLACE
        )
        await services.episodes.recorder.append(replica, events(1, 3))
        await services.episodes.ender.end(NS, episode.episode_id, end(), "")
        await watcher.until(lambda: len(watcher.types(episode.episode_id)) == 2)
    ended = watcher.events[-1]
    assert (ended.type, ended.thing.event_count) == (ChangeType.UPDATED, 3)


async def test_decisions_and_learning_events_that_were_deleted_are_told():
    world = await open_world()
    services = world.services
    await services.learning.decisions.record(NS, decision(decision_id="d"))
    await services.learning.learning_events.record(NS, learning_event(learning_event_id="l"))
    async with change_watcher(world) as watcher:
        await services.learning.decisions.delete(NS, "d")
        await services.learning.learning_events.delete(NS, "l")
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [(one.resource_kind, one.id, one.type) for one in watcher.events] == [
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
        await watcher.until(lambda: bool(watcher.events))
    assert {(one.type, one.id) for one in watcher.events} == {(ChangeType.STORED, "s")}


async def test_events_of_an_episode_are_no_changes():
    world = await open_world()
    episode = (await world.services.episodes.creator.start(NS, start())).episode
    async with change_watcher(world) as watcher:
        replica = await world.services.episodes.recorder.open(
            NS, episode.episode_id, TakeoverPolicy.REPLACE
        )
        await world.services.episodes.recorder.append(replica, events(1, 50))
        await save(world)
        await watcher.until(lambda: bool(watcher.events))
    assert [one.resource_kind for one in watcher.events] == [ResourceKind.PATTERN]


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
        await memories.until(lambda: bool(memories.events))
        await deletes.until(lambda: bool(deletes.events))
        await other.until(lambda: bool(other.events))
    assert [one.resource_kind for one in memories.events] == [ResourceKind.MEMORY]
    assert [one.type for one in deletes.events] == [ChangeType.DELETED]
    assert [one.namespace for one in other.events] == ["other"]


async def test_payloads_are_left_out_if_not_asked_for():
    world = await open_world()
    async with change_watcher(world, payload=False) as watcher:
        await save(world)
        await watcher.until(lambda: bool(watcher.events))
    assert watcher.events[0].thing is None
    assert watcher.events[0].type is ChangeType.STORED


async def test_a_watch_goes_on_behind_any_cursor():
    world = await open_world()
    async with change_watcher(world) as first:
        for number in range(5):
            await save(world, f"task {number}")
        await first.until(lambda: len(first.events) == 5)
    for place, one in enumerate(first.events):
        again = world.another_process()
        async with change_watcher(again, cursor=one.cursor) as later:
            last = (await save(again, f"later {place}")).pattern.pattern_id
            await later.until_seen(last)
        ids = [one.id for one in later.events]
        assert ids[: 4 - place] == [one.id for one in first.events[place + 1 :]]
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
        await later.until(lambda: len(later.events) >= 4)
    assert [(one.id, one.type) for one in later.events] == [
        (kept, "updated"),
        (gone, "deleted"),
        (new, "stored"),  # new to the watcher, though it was used since
        (brief, "deleted"),
    ]
    assert later.events[0].thing.outcomes.usage_count == 3


async def test_what_is_deleted_and_stored_again_ends_as_stored():
    world = await open_world()
    async with change_watcher(world) as first:
        pass
    await save(world, "one", pattern_id="p", dedupe=Dedupe.NONE)
    await world.services.patterns.patterns.delete(NS, "p", "")
    await save(world, "two", pattern_id="p", dedupe=Dedupe.NONE)
    async with change_watcher(world, cursor=first.cursor) as later:
        await save(world, "last", pattern_id="last", dedupe=Dedupe.NONE)
        await later.until(lambda: later.events[-1:] != [] and later.events[-1].id == "last")
    assert later.types("p") == [ChangeType.STORED]
    assert later.events[0].thing.content.task == "two"


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
        await watcher.until(lambda: watcher.events[-1].id == later.pattern.pattern_id)
    assert len({one.id for one in watcher.events}) == 253
    assert saved.pattern.pattern_id in {one.id for one in watcher.events}
    assert {one.type for one in watcher.events} == {ChangeType.STORED}


async def test_a_watch_from_the_start_goes_on_in_its_midst():
    world = await open_world()
    for number in range(230):
        await save(world, f"task {number}")
    for number in range(3):
        await world.services.memories.memories.create(NS, memory(f"fact {number}"))
    async with change_watcher(world, from_start=True) as whole:
        await whole.until(lambda: len(whole.events) == 233)
        await whole.next()
    for place in (0, 1, 2, 50, 101, 102, 103, 232):
        async with change_watcher(world, cursor=whole.events[place].cursor) as rest:
            await rest.until(lambda: rest.cursor is not None and rest.cursor.scan is None)
        assert [one.id for one in rest.events] == [one.id for one in whole.events[place + 1 :]]


async def test_an_extracted_pattern_is_told_as_learned():
    world = await open_world()
    async with change_watcher(world) as watcher:
        await save(world, "by hand")
        await save(world, "from episodes", source_episode_ids=("e1", "e2"))
        await watcher.until(lambda: len(watcher.events) == 2)
    assert [one.type for one in watcher.events] == ["stored", "pattern_learned"]


async def test_a_recall_is_told_to_those_who_watch_just_then():
    world = await open_world()
    saved = await save(world, "Log in to the site")
    async with change_watcher(world) as watcher, change_watcher(world, namespace="other") as other:
        answer = await recall(world, "Log in to the site")
        await watcher.until(lambda: bool(watcher.events))
        await world.services.memories.memories.create("other", memory())
        await other.until(lambda: bool(other.events))
    [match] = watcher.events
    assert (match.type, match.cursor) == (ChangeType.PATTERN_MATCHED, None)
    assert match.thing.pattern_id == saved.pattern.pattern_id
    assert match.thing.retrieval_id == answer.retrieval_id
    assert match.thing.similarity == pytest.approx(1)
    assert [one.resource_kind for one in other.events] == [ResourceKind.MEMORY]


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
    with pytest.raises(CursorExpiredError, match="older than"):
        async with change_watcher(world, cursor=watcher.cursor):
            pass


async def test_a_cursor_of_another_store_says_so():
    async with change_watcher(await open_world()) as watcher:
        pass
    with pytest.raises(CursorExpiredError, match="another store"):
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
            await watcher.until(lambda: bool(watcher.events))
    failing.clear()
    async with change_watcher(world, cursor=watcher.cursor) as again:
        await again.until(lambda: bool(again.events))
    assert again.events[0].thing.content.task == "Log in"


async def test_nobody_is_left_when_all_have_gone():
    world = await open_world()
    before = asyncio.all_tasks()
    async with change_watcher(world), change_watcher(world):
        assert len(asyncio.all_tasks()) > len(before)
    assert asyncio.all_tasks() == before
