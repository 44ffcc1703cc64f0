"""The feed of changes on the wire."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.server.cursors import feed_of
from tests.server.service import Lot
from tests.server.wire import failure


class Watcher:
    """A stream of changes, message by message."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.events: list[pb.ChangeEvent] = []
        self.cursor = ""

    async def next(self) -> pb.WatchChangesResponse:
        async with asyncio.timeout(30):
            message: pb.WatchChangesResponse = await self.call.read()
        self.events += message.change_events
        self.cursor = message.cursor
        assert message.cursor
        assert message.HasField("server_time")
        return message

    async def until(self, count: int) -> list[pb.ChangeEvent]:
        while len(self.events) < count:
            await self.next()
        return self.events


@asynccontextmanager
async def change_watcher(lot: Lot, **requested: Any) -> AsyncIterator[Watcher]:
    call = lot.memories.WatchChanges(**requested)
    watcher = Watcher(call)
    first = await watcher.next()
    assert not first.change_events
    try:
        yield watcher
    finally:
        call.cancel()


async def test_each_kind_comes_with_its_payload(lot):
    resource_kinds = [
        resource_kind_pb2.RESOURCE_KIND_MEMORY,
        resource_kind_pb2.RESOURCE_KIND_PATTERN,
        resource_kind_pb2.RESOURCE_KIND_EPISODE,
        resource_kind_pb2.RESOURCE_KIND_ERROR_SOLUTION,
        resource_kind_pb2.RESOURCE_KIND_DECISION,
        resource_kind_pb2.RESOURCE_KIND_LEARNING_EVENT,
    ]
    async with change_watcher(lot, resource_kinds=resource_kinds) as watcher:
        memory = (await lot.memories.CreateMemory(memory={"content": "c"})).memory
        pattern = (await lot.patterns.SavePattern(pattern={"task": "t"})).pattern
        episode = (await lot.episodes.StartEpisode(episode={"task": "t"})).episode
        solution = (
            await lot.memories.SaveErrorSolution(
                error_solution={"error_message": "KeyError: 'a'", "resolution": "use get"}
            )
        ).error_solution
        decision = (
            await lot.learning.RecordDecision(decision={"context": "c", "chosen_option": "a"})
        ).decision
        event = (
            await lot.learning.RecordLearningEvent(learning_event={"event_type": "success"})
        ).learning_event
        events = await watcher.until(6)
    assert {one.type for one in events} == {pb.CHANGE_TYPE_STORED}
    assert [getattr(one, one.WhichOneof("payload") or "none") for one in events] == [
        memory, pattern, episode, solution, decision, event,
    ]  # fmt: skip
    assert [one.id for one in events] == [
        memory.memory_id, pattern.pattern_id, episode.episode_id, solution.error_solution_id,
        decision.decision_id, event.learning_event_id,
    ]  # fmt: skip
    assert all(one.cursor and one.HasField("change_time") for one in events)
    assert len({one.namespace for one in events}) == 1


async def test_updates_and_deletes_are_told_and_a_cursor_goes_on(lot):
    pattern = (await lot.patterns.SavePattern(pattern={"task": "t"})).pattern
    async with change_watcher(
        lot, resource_kinds=[resource_kind_pb2.RESOURCE_KIND_PATTERN]
    ) as watcher:
        await lot.patterns.RecordOutcome(
            pattern_ids=[pattern.pattern_id], query="q", outcome="OUTCOME_SUCCESS"
        )
        [used] = (await watcher.until(1))[:1]
        cursor = used.cursor
    await lot.patterns.DeletePattern(pattern_id=pattern.pattern_id)
    async with change_watcher(lot, after_cursor=cursor) as watcher:
        while not watcher.events or watcher.events[-1].type != pb.CHANGE_TYPE_DELETED:
            await watcher.next()
    deleted = watcher.events[-1]
    assert used.type == pb.CHANGE_TYPE_UPDATED
    assert used.pattern.outcomes.usage_count == 1
    assert (deleted.id, deleted.WhichOneof("payload")) == (pattern.pattern_id, None)


async def test_each_write_of_a_session_is_told_without_its_values_and_messages(lot):
    message = {"role": "user", "content": "secret"}
    async with change_watcher(lot, resource_kinds=["RESOURCE_KIND_SESSION"]) as watcher:
        for write in (
            lambda: lot.memories.AppendSessionMessage(session_id="s", message=message),
            lambda: lot.memories.AppendSessionMessage(session_id="s", message=message),
            lambda: lot.memories.PutSessionValue(
                session_id="s", key="k", value={"bool_value": True}
            ),
            lambda: lot.memories.ClearSession(session_id="s", keys=["k"]),
            lambda: lot.memories.ClearSession(session_id="s", clear_messages=True),
        ):
            before = len(watcher.events)
            await write()
            session = (await lot.memories.GetSession(session_id="s")).session
            session.ClearField("messages")
            session.ClearField("values")
            session.ClearField("value_details")
            while len(watcher.events) == before or watcher.events[-1].session != session:
                await watcher.next()
        await lot.memories.ClearSession(session_id="s")
        while watcher.events[-1].type != pb.CHANGE_TYPE_DELETED:
            await watcher.next()
    assert {one.id for one in watcher.events} == {"s"}
    first, *between, last = [one.type for one in watcher.events]
    assert (first, last) == (pb.CHANGE_TYPE_STORED, pb.CHANGE_TYPE_DELETED)
    assert set(between) == {pb.CHANGE_TYPE_UPDATED}
    assert watcher.events[-1].WhichOneof("payload") is None


async def test_puts_and_deletes_of_a_preference_are_told(lot):
    async with change_watcher(lot, resource_kinds=["RESOURCE_KIND_PREFERENCE"]) as watcher:
        for number in range(2):
            put = await lot.memories.PutPreference(key="k", value={"number_value": number})
            one = (await watcher.until(number + 1))[-1]
            kind = pb.CHANGE_TYPE_UPDATED if number else pb.CHANGE_TYPE_STORED
            assert (one.type, one.id, one.preference) == (kind, "k", put.preference)
        await lot.memories.DeletePreference(key="k")
        assert (await watcher.until(3))[-1].type == pb.CHANGE_TYPE_DELETED


async def test_payloads_can_be_left_out_and_types_chosen(lot):
    requested = {
        "omit_payload": True,
        "types": [pb.CHANGE_TYPE_STORED],
        "resource_kinds": ["RESOURCE_KIND_MEMORY"],
    }
    async with change_watcher(lot, **requested) as watcher:
        memory = (await lot.memories.CreateMemory(memory={"content": "c"})).memory
        await lot.memories.DeleteMemory(memory_id=memory.memory_id)
        await lot.memories.CreateMemory(memory={"content": "d"}, memory_id="last")
        while "last" not in [one.id for one in watcher.events]:
            await watcher.next()
    assert {one.type for one in watcher.events} == {pb.CHANGE_TYPE_STORED}
    assert {one.WhichOneof("payload") for one in watcher.events} == {None}


async def test_from_the_start_all_comes_first(lot):
    for number in range(3):
        await lot.memories.CreateMemory(memory={"content": f"fact {number}"})
    async with change_watcher(
        lot, from_start=True, resource_kinds=["RESOURCE_KIND_MEMORY"]
    ) as watcher:
        await watcher.until(3)
        await lot.memories.CreateMemory(memory={"content": "one more"})
        events = await watcher.until(4)
    assert [one.memory.content for one in events] == ["fact 2", "fact 1", "fact 0", "one more"]


async def test_a_match_is_told_live(lot):
    pattern = (await lot.patterns.SavePattern(pattern={"task": "Log in to the site"})).pattern
    async with change_watcher(lot, types=["CHANGE_TYPE_PATTERN_MATCHED"]) as watcher:
        answer = await lot.patterns.RecallPatterns(query="Log in to the site")
        [match] = await watcher.until(1)
    assert match.cursor == ""
    assert match.pattern_match.pattern_id == pattern.pattern_id
    assert match.pattern_match.retrieval_id == answer.retrieval_id
    assert match.pattern_match.query == "Log in to the site"


async def test_an_idle_watch_beats(lot):
    async with change_watcher(lot, heartbeat_interval={"seconds": 1}) as watcher:
        assert not (await watcher.next()).change_events
        assert not (await watcher.next()).change_events


async def test_a_large_answer_comes_in_messages_that_a_usual_client_takes(lot):
    for number in range(8):
        await lot.memories.CreateMemory(memory={"content": f"{number} " + "x" * 500_000})
    async with change_watcher(
        lot, from_start=True, resource_kinds=["RESOURCE_KIND_MEMORY"]
    ) as watcher:
        largest = 0
        while len(watcher.events) < 8:
            largest = max(largest, (await watcher.next()).ByteSize())
    assert largest < 2**20 + 2**19


@pytest.mark.parametrize(
    "resource_kind",
    [
        "RESOURCE_KIND_OUTCOME",
        "RESOURCE_KIND_EPISODE_EVENT",
        "RESOURCE_KIND_ACTION_VALUE",
        "RESOURCE_KIND_POLICY",
    ],
)
async def test_what_cannot_be_watched_is_refused(lot, resource_kind):
    failed = await failure(
        lot.memories.WatchChanges(resource_kinds=["RESOURCE_KIND_PATTERN", resource_kind]).read()
    )
    assert failed.fields == {"resource_kinds[1]": "resource_kind.watched"}
    assert resource_kind in failed.message


def _token(text: str, namespace: str = "") -> str:
    """A cursor of this text; ``FEED`` in it is the feed of a namespace."""
    text = text.replace("FEED", feed_of(namespace))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("cursor", ["x", "not base64 at all!"])
async def test_a_cursor_that_is_no_token_is_refused(lot, cursor):
    failed = await failure(lot.memories.WatchChanges(after_cursor=cursor).read())
    assert failed.fields == {"after_cursor": "cursor.damaged"}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '[1,1,{"w":1},null,null]',
        '[1,1,1,{"w":1},null,null]',
        '[2,"FEED",1,{"w":1},null,null]',
        '[1,"FEED",1,{},null,null]',
        '[1,"FEED",-1,{"w":1},null,null]',
        '[1,"FEED",1,{"w":"1"},null,null]',
        '[1,"FEED",1,{"w":1},3,null]',
        '[1,"FEED",1,{"w":1},null,["pattern",1,"no point"]]',
        '[1,"FEED",1,{"w":1},null,["nothing",null]]',
        "[" * 45_000,
    ],
)
async def test_a_cursor_that_was_made_up_is_refused(lot, text):
    cursor = _token(text, lot.namespace)
    failed = await failure(lot.memories.WatchChanges(after_cursor=cursor).read())
    assert failed.fields == {"after_cursor": "cursor.damaged"}


async def test_a_cursor_of_another_namespace_is_refused(lot):
    async with change_watcher(lot) as watcher:
        cursor = watcher.cursor
    other = lot.on(f"{lot.namespace}-2")
    failed = await failure(other.memories.WatchChanges(after_cursor=cursor).read())
    assert failed.fields == {"after_cursor": "cursor.other_feed"}


async def test_a_cursor_that_cannot_be_gone_on_from_says_what_to_do(lot):
    for time, why in ((1, "older"), (2**52, "store")):
        cursor = _token(f'[1,"FEED",{time},{{"w":1}},null,null]', lot.namespace)
        failed = await failure(lot.memories.WatchChanges(after_cursor=cursor).read())
        assert (failed.code, failed.reason) == ("OUT_OF_RANGE", "CURSOR_EXPIRED")
        assert why in failed.message
        assert "from_start" in failed.message


async def test_a_start_and_a_cursor_exclude_each_other(lot):
    call = lot.memories.WatchChanges(
        after_cursor=_token('[1,"FEED",1,{"w":1},null,null]'), from_start=True
    )
    assert (await failure(call.read())).fields == {"": "watch_changes.start.one"}


async def test_a_watch_that_is_cancelled_leaves_nothing(lot):
    for _ in range(5):
        async with change_watcher(lot):
            pass
    async with change_watcher(lot) as watcher:  # and others go on
        await lot.memories.CreateMemory(memory={"content": "c"})
        assert (await watcher.until(1))[0].memory.content == "c"
