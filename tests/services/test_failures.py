"""AnalyzeFailures over a store: what is read of failed episodes, and what a group says."""

from __future__ import annotations

import pytest
from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.episode import (
    EpisodeEnd,
    EpisodeError,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
)
from lot_grpc.domain.failures.group import FailureAnalysis
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.services.episodes import failed_episode_reader as failure_reading
from lot_grpc.services.episodes import failure_analyzer as failures
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.services.records.episodes import base_payload, episode_point, event_record
from tests.services.world import NS, World, start

HOUR = 3_600_000_000
FAILED, SUCCEEDED = EpisodeStatus.FAILED, EpisodeStatus.SUCCEEDED
EVERY = EpisodeFilter()


def event(event_type: str, **data: str) -> EpisodeEvent:
    struct = Struct()
    struct.update(data)
    return EpisodeEvent(0, event_type, data=struct.SerializeToString(deterministic=True))


async def failed(
    world: World,
    episode_id: str,
    *events: EpisodeEvent,
    error: EpisodeError | None = None,
    patterns: tuple[str, ...] = (),
    task: str = "Deploy the site",
    hour: int = 1,
    status: EpisodeStatus = FAILED,
    approach: str = "",
    tools: tuple[str, ...] = (),
    namespace: str = NS,
    category: str = "",
) -> None:
    end = EpisodeEnd(
        status,
        error=error,
        error_patterns=patterns,
        approach=approach,
        tools_used=tools,
        end_time=hour * HOUR,
    )
    begun = EpisodeStart(task, category=category, start_time=hour * HOUR - 1)
    draft = EpisodeDraft(begun, episode_id, end=end, events=events)
    await world.services.episodes.creator.record(namespace, draft)


async def analyze(world: World, asked: EpisodeFilter = EVERY, limit: int = 10) -> FailureAnalysis:
    return await world.services.episodes.failures.analyze(NS, asked, limit)


async def test_nothing_failed_gives_no_groups(world):
    await failed(world, "good", status=SUCCEEDED)
    assert await analyze(world) == FailureAnalysis()


async def test_running_and_succeeded_ones_and_other_namespaces_are_no_failures(world):
    await world.services.episodes.creator.start(NS, start(episode_id="running"))
    await failed(world, "good", event("tool_error", error="boom"), status=SUCCEEDED)
    await failed(world, "theirs", error=EpisodeError("X", "y"), namespace="other")
    await failed(world, "bad", error=EpisodeError("ValueError", "no 7 in /a/b"))
    analysis = await analyze(world)
    assert analysis.failed_count == 1
    (group,) = analysis.groups
    assert group.signature == "ValueError: no <number> in <path>"
    assert group.example_episode_ids == ("bad",)
    assert (group.count, group.share, group.trend.slope) == (1, 1.0, 0.0)


@pytest.mark.parametrize(
    ("error", "events", "patterns", "signature"),
    [
        (EpisodeError("A", "end"), [event("tool_error", error="seen")], ("p",), "A: end"),
        (None, [event("tool_error", error="one"), event("tool_error", error="two")], (), "two"),
        (None, [event("tool_error", message="seen"), event("note")], ("p",), "seen"),
        (None, [event("tool_call", tool="sh", error_type="B")], (), "B"),
        (None, [event("note", note="n")], ("first", "last"), "last"),
        (EpisodeError(), [event("tool_error", error="seen")], (), "seen"),
        (EpisodeError(), [], (), ""),
        (None, [event("tool_error")], (), ""),
    ],
)
async def test_the_error_is_that_of_the_end_else_of_the_events_else_a_pattern(
    world, error, events, patterns, signature
):
    await failed(world, "e", *events, error=error, patterns=patterns)
    (group,) = (await analyze(world)).groups
    assert group.signature == signature
    assert group.signatures == ((signature,) if signature else ())


@pytest.mark.parametrize(
    ("events", "after"),
    [
        ([event("plan"), event("tool_call", tool="sh"), event("tool_error", error="x")],
         ("tool_call", "sh")),
        ([event("plan"), event("tool_call", tool="sh", error="x")], ("tool_call", "sh")),
        ([event("tool_call", tool="sh"), event("tool_error", error="y"), event("plan")],
         ("plan", "")),
        ([event("tool_error", error="x")], ("", "")),
        ([], ("", "")),
    ],
)  # fmt: skip
async def test_the_step_after_which_it_failed(world, events, after):
    await failed(world, "e", *events, error=EpisodeError("", "x"))
    (group,) = (await analyze(world)).groups
    assert (group.failed_after_event_type, group.failed_after_tool) == after
    assert group.failed_after_share == (1.0 if after[0] else 0.0)


async def test_the_most_frequent_step_and_tools_of_a_group(world):
    for number, tool in enumerate(("sh", "http", "sh")):
        steps = event("tool_call", tool=tool), event("tool_error", error="boom")
        await failed(world, f"e{number}", *steps, tools=("git",), hour=number + 1)
    (group,) = (await analyze(world)).groups
    assert (group.failed_after_event_type, group.failed_after_tool) == ("tool_call", "sh")
    assert group.failed_after_share == pytest.approx(2 / 3)
    assert group.tools == ("git", "sh", "http")
    assert group.example_episode_ids == ("e2", "e1", "e0")
    assert (group.first_time, group.last_time) == (1 * HOUR, 3 * HOUR)


async def test_an_error_far_from_the_end_is_found_and_one_farther_is_not(world):
    for name, behind in (("near", 60), ("far", 100)):
        quiet = [event("note", note=str(n)) for n in range(behind)]
        await failed(world, name, event("tool_error", error="boom"), *quiet)
    groups = {group.signature: group for group in (await analyze(world)).groups}
    assert groups["boom"].example_episode_ids == ("near",)
    assert groups[""].example_episode_ids == ("far",)


async def test_an_end_that_tells_the_error_needs_no_more_than_the_last_events(world, monkeypatch):
    quiet = [event("note", note=str(n)) for n in range(40)]
    await failed(world, "e", *quiet, error=EpisodeError("A", "b"))
    read: list[int] = []
    get = world.store.get

    async def counted(collection, namespace, ids, *, vectors=False):
        if collection == EVENTS:
            read.append(len(ids))
        return await get(collection, namespace, ids, vectors=vectors)

    monkeypatch.setattr(world.store, "get", counted)
    await analyze(world)
    assert read == [failure_reading.LAST_EVENTS]


async def test_events_of_a_replaced_writer_say_nothing(world):
    await failed(world, "e", event("plan"), event("tool_error", error="late"))
    point = episode_point(NS, "e")
    late = event("tool_error", error="stale")
    stale = event_record(
        NS, "e", EpisodeEvent(2, late.event_type, data=late.data, record_time=1), epoch=0
    )
    await world.store.put(EVENTS, [stale])
    await world.store.update(EPISODES, NS, point, set=base_payload(1, 1))
    (group,) = (await analyze(world)).groups
    assert group.signature == ""


async def test_a_filter_narrows_the_failures(world):
    await failed(world, "a", error=EpisodeError("A", "x"), category="web")
    await failed(world, "b", error=EpisodeError("B", "y"), category="data")
    analysis = await analyze(world, EpisodeFilter(categories=("web",)))
    assert [group.signature for group in analysis.groups] == ["A: <name>"]
    assert analysis.failed_count == 1
    assert (await analyze(world, EpisodeFilter(statuses=(SUCCEEDED,)))).group_count == 0


async def test_groups_beyond_the_limit_are_counted(world):
    for number, letter in enumerate(("walnut", "harbour", "sunset")):
        for copy in range(number + 1):
            error = EpisodeError(letter.title(), f"{letter} {letter}")
            await failed(world, f"{letter}{copy}", error=error)
    analysis = await analyze(world, limit=2)
    assert [group.count for group in analysis.groups] == [3, 2]
    assert (analysis.group_count, analysis.signature_count) == (3, 3)


async def test_the_latest_success_at_a_like_task_tells_its_approach(world):
    await failed(world, "bad", error=EpisodeError("A", "x"), task="Deploy the site")
    await failed(world, "old", approach="blue-green", hour=5, status=SUCCEEDED)
    await failed(world, "new", approach="canary", hour=7, status=SUCCEEDED)
    await failed(world, "silent", hour=9, status=SUCCEEDED)
    await failed(world, "unlike", approach="other", hour=11, status=SUCCEEDED, task="Paint a wall")
    (group,) = (await analyze(world)).groups
    assert group.last_good is not None
    assert (group.last_good.episode_id, group.last_good.approach) == ("new", "canary")
    assert group.last_good.similarity == pytest.approx(1)


async def test_without_an_approach_the_latest_success_is_named_and_without_success_none(world):
    await failed(world, "bad", error=EpisodeError("A", "x"), task="Deploy the site")
    assert (await analyze(world)).groups[0].last_good is None
    await failed(world, "good", status=SUCCEEDED, task="Deploy the site")
    run = (await analyze(world)).groups[0].last_good
    assert run is not None
    assert (run.episode_id, run.approach) == ("good", "")


async def test_a_growing_share_has_a_positive_trend(world):
    for day in range(20):
        error = EpisodeError("Old", "walnut") if day < 10 else EpisodeError("New", "sunset beach")
        await failed(world, f"e{day}", error=error, hour=24 * day + 1)
    groups = {group.example_error.type: group.trend for group in (await analyze(world)).groups}
    assert groups["New"].slope > 0 > groups["Old"].slope
    assert groups["New"].slope == pytest.approx(-groups["Old"].slope)
    assert groups["New"].significant


async def test_what_is_too_much_is_left_out_and_said(world, monkeypatch):
    monkeypatch.setattr(failure_reading, "MOST_FAILURES", 4)
    monkeypatch.setattr(failures, "MOST_COMPARED", 1)
    for hour, word in enumerate(("walnut", "harbour", "sunset", "walnut", "beach"), 1):
        await failed(world, f"e{hour}", error=EpisodeError("", word), hour=hour)
    analysis = await analyze(world)
    assert (analysis.failed_count, analysis.analyzed_count) == (5, 4)
    assert (analysis.signature_count, analysis.compared_signature_count) == (4, 1)
    assert {one for group in analysis.groups for one in group.example_episode_ids} == {
        "e2", "e3", "e4", "e5"
    }  # fmt: skip


async def test_a_long_message_is_shown_cut(world):
    await failed(world, "e", error=EpisodeError("A", "ä" * 10_000))
    (group,) = (await analyze(world)).groups
    assert group.example_error.message == "ä" * 512


async def test_of_a_long_stack_trace_the_line_that_says_what_went_wrong_is_shown(world):
    frames = '  File "/a/b.py", line 3, in f\n    g()\n' * 500
    trace = f"Traceback (most recent call last):\n{frames}ValueError: no 7"
    await failed(world, "long", error=EpisodeError("ValueError", trace))
    await failed(world, "short", error=EpisodeError("ValueError", "no 8"), hour=2)
    await failed(world, "last", error=EpisodeError("ValueError", trace), hour=3)
    (group,) = (await analyze(world)).groups
    assert (group.signature, group.signature_count) == ("ValueError: no <number>", 1)
    assert group.example_error.message == "ValueError: no 7"
