"""Replays and changes: each once, in order, over streams that break."""

import asyncio
from typing import Any

import grpc
import pytest
from either import Either, until
from lot_client import AsyncLotClient, LotClient, LotError, RetryPolicy
from lot_client.pb.lot.v1.change_pb2 import ChangeEvent, WatchChangesResponse
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import ReplayEpisodeResponse
from scripted import Scripted, ends

RETRY = RetryPolicy(first_delay=0.001, max_delay=0.01)
GONE = ends(grpc.StatusCode.UNAVAILABLE)
SLOW = ends(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")


def batch(*sequences: int) -> ReplayEpisodeResponse:
    return ReplayEpisodeResponse(events=[EpisodeEvent(sequence=n) for n in sequences])


def news(behind: str, *cursors: str) -> WatchChangesResponse:
    changes = [ChangeEvent(cursor=cursor, id=cursor) for cursor in cursors]
    return WatchChangesResponse(change_events=changes, cursor=behind)


async def test_a_replay_goes_on_behind_what_came(either: Either, server: Scripted):
    server.replays = [[batch(3, 4), GONE], [GONE], [batch(5), batch(6, 7)]]
    async with either(server.address, retry=RETRY) as client:
        events = client.replay_episode("e-1", after_sequence=2, speed=2.0, follow=True)
        found = [event.sequence async for event in events]

    assert found == [3, 4, 5, 6, 7]
    assert [request.after_sequence for request in server.requests] == [2, 4, 4]
    assert all(request.speed == 2.0 and request.follow for request in server.requests)


async def test_a_replay_ends_with_an_error_that_stays(either: Either, server: Scripted):
    server.replays = [[batch(1), ends(grpc.StatusCode.NOT_FOUND, "EPISODE_NOT_FOUND")]]
    async with either(server.address, retry=RETRY) as client:
        events = client.replay_episode("e-1")
        first = await anext(events)
        with pytest.raises(LotError) as caught:
            await anext(events)

    assert first.sequence == 1
    assert caught.value.reason == "EPISODE_NOT_FOUND"


async def test_a_replay_gives_up_when_the_server_stays_away(either: Either, server: Scripted):
    server.replays = [[GONE] for _ in range(1000)]
    async with either(server.address, retry=RETRY, deadline=1.0) as client:
        with pytest.raises(LotError) as caught:
            [_ async for _ in client.replay_episode("e-1")]

    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert len(server.requests) > 6


async def take(watch: Any, count: int) -> list[tuple[str, str]]:
    """Changes, each with the watch's cursor after it."""
    found = []
    async for change in watch:
        found.append((change.id, watch.cursor))
        if len(found) == count:
            break
    return found


async def test_a_watch_goes_on_from_its_cursor(either: Either, server: Scripted):
    server.watches = [
        [news("c0"), news("c2", "c1", "c2"), news("c3"), GONE],
        [SLOW],
        [news("c4", "c4"), news("c6", "c5", "")],
    ]
    async with (
        either(server.address, retry=RETRY, namespace="a") as client,
        client.watch_changes(
            from_start=True, resource_kinds=["PATTERN"], types=["STORED"]
        ) as watch,
    ):
        begun = watch.cursor
        found = await take(watch, 5)

    assert begun == "c0"
    assert found == [("c1", "c1"), ("c2", "c2"), ("c4", "c4"), ("c5", "c5"), ("", "c6")]
    asked = [(request.after_cursor, request.from_start) for request in server.requests]
    assert asked == [("", True), ("c3", False), ("c3", False)]
    assert {request.namespace for request in server.requests} == {"a"}
    assert list(server.requests[2].resource_kinds) == [2]


async def test_changes_that_came_are_given_out_before_the_next_stream(
    either: Either, server: Scripted
):
    server.watches = [[news("c3", "c1", "c2", "c3"), GONE], [news("c4", "c4")]]
    async with (
        either(server.address, retry=RETRY) as client,
        client.watch_changes(after_cursor="c0") as watch,
    ):
        found = await take(watch, 4)

    assert [change for change, _ in found] == ["c1", "c2", "c3", "c4"]
    assert [request.after_cursor for request in server.requests] == ["c0", "c3"]


async def test_a_cursor_that_is_too_old_is_told(either: Either, server: Scripted):
    server.watches = [[ends(grpc.StatusCode.OUT_OF_RANGE, "CURSOR_EXPIRED")]]
    async with either(server.address, retry=RETRY) as client:
        watch = client.watch_changes(after_cursor="old")
        with pytest.raises(LotError) as caught:
            await take(watch, 1)

    assert caught.value.reason == "CURSOR_EXPIRED"


async def test_a_closed_watch_ends_for_who_waits(either: Either, server: Scripted):
    server.watches = [[news("c0"), news("c1", "c1")]]
    async with (
        either(server.address, retry=RETRY) as client,
        client.watch_changes() as watch,
    ):
        waiting = asyncio.create_task(take(watch, 100))
        await until(lambda: watch.cursor == "c1")
        watch.close()
        found = await waiting

    assert found == [("c1", "c1")]


async def test_a_watch_that_is_closed_while_it_opens_ends(either: Either, server: Scripted):
    """As another thread may close it."""
    server.watches = [[]]
    async with either(server.address, retry=RETRY) as client:
        watch = client.watch_changes()
        opened = client.memories.WatchChanges

        def close_meanwhile(request: Any) -> Any:
            watch.close()
            return opened(request)

        client.memories.WatchChanges = close_meanwhile
        found = await take(watch, 100)

    assert found == []


async def test_a_cancelled_wait_loses_no_change(server: Scripted):
    server.watches = [[news("c0")], [news("c1", "c1")]]
    async with (
        AsyncLotClient(server.address, retry=RETRY) as client,
        client.watch_changes() as watch,
    ):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(watch), 0.05)
        assert (await anext(watch)).id == "c1"

    assert [request.after_cursor for request in server.requests] == ["", "c0"]


async def test_failures_are_asked_for(either: Either, server: Scripted):
    async with either(server.address) as client:
        answer = await client.analyze_failures(filter={"categories": ["x"]}, limit=5)

    assert answer.failed_count == 3
    assert list(server.requests[0].filter.categories) == ["x"]
    assert server.requests[0].limit == 5


# --- the real server, as far as it carries these out --------------------------------------------


def needs(client: LotClient, call: str) -> None:
    if not any(each.endswith(call) for each in client.get_server_info().capabilities):
        pytest.skip(f"this server does not carry out {call}: GetServerInfo.capabilities")


async def test_a_real_replay_equals_what_was_recorded(
    either: Either, address: str, namespace: str, sync_client: LotClient
):
    needs(sync_client, "ReplayEpisode")
    with sync_client.recorder("A task") as recorder:
        for n in range(1200):
            recorder.record("step", {"n": n})
    async with either(address, namespace=namespace) as client:
        replayed = [event async for event in client.replay_episode(recorder.episode_id)]
        rest = client.replay_episode(recorder.episode_id, after_sequence=1198)
        last = [event.sequence async for event in rest]

    stored = list(sync_client.list_episode_events(recorder.episode_id, page_size=1000))
    assert replayed == stored
    assert last == [1199, 1200]


async def test_a_real_watch_tells_of_what_is_stored(
    either: Either, address: str, namespace: str, sync_client: LotClient
):
    needs(sync_client, "WatchChanges")
    async with either(address, namespace=namespace) as client:
        async with client.watch_changes(resource_kinds=["PATTERN"]) as watch:
            sync_client.save_pattern("A task", pattern_id="p-1")
            [(first, cursor)] = await take(watch, 1)
        sync_client.save_pattern("Another task", pattern_id="p-2")
        async with client.watch_changes(resource_kinds=["PATTERN"], after_cursor=cursor) as watch:
            [(second, _)] = await take(watch, 1)

    assert (first, second) == ("p-1", "p-2")


async def test_real_failures_are_grouped(
    either: Either, address: str, namespace: str, sync_client: LotClient
):
    needs(sync_client, "AnalyzeFailures")
    for number in range(3):
        error = {"type": "TimeoutError", "message": f"no answer within {number} s"}
        sync_client.record_episode("Call the billing service", "FAILED", error=error)
    async with either(address, namespace=namespace) as client:
        answer = await client.analyze_failures()

    assert answer.failed_count == 3
    assert [group.count for group in answer.groups] == [3]
