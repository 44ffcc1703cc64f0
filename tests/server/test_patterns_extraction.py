"""ExtractPatterns and extract_knowledge on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import episode_pb2, pattern_pb2
from tests.server.service import Lot
from tests.server.wire import failure

SUCCEEDED, FAILED = episode_pb2.EPISODE_STATUS_SUCCEEDED, episode_pb2.EPISODE_STATUS_FAILED
LEARNED = pattern_pb2.PATTERN_KIND_LEARNED


def calls(*tools: str) -> list[dict[str, Any]]:
    return [{"event_type": "tool_call", "data": {"tool": tool}} for tool in tools]


async def recorded(lot: Lot, task: str, *tools: str, **named: Any) -> Any:
    auto = named.pop("extract_knowledge", False)
    episode = {"task": task, "status": SUCCEEDED, **named}
    return await lot.episodes.RecordEpisode(
        episode=episode, events=calls(*tools), extract_knowledge=auto
    )


async def logins(lot: Lot, count: int = 4, **named: Any) -> None:
    for number in range(count):
        await recorded(
            lot, f"Add login page {number}", "editor", "pytest", task_type="login", **named
        )


async def test_a_pattern_is_learned_from_each_group_of_like_episodes(lot: Lot):
    await logins(lot)
    for number in range(5):
        await recorded(lot, f"Ship release {number}", "git", category="ops")
    answer = await lot.patterns.ExtractPatterns()
    assert answer.episode_count == 9
    ops, login = answer.patterns
    assert (ops.category, login.task_type) == ("ops", "login")
    assert (login.kind, login.pattern_type) == (LEARNED, pattern_pb2.PATTERN_TYPE_SUCCESS)
    assert [action.tool for action in login.actions] == ["editor", "pytest"]
    assert login.tools == ["editor", "pytest"]
    assert len(login.source_episode_ids) == 4
    assert login.outcomes.success_rate == 1
    assert login.confidence == pytest.approx(0.510, abs=0.001)  # Wilson's bound of 4 of 4
    assert login.metadata["extraction"]["episode_count"] == 4
    stored = await lot.patterns.GetPattern(pattern_id=login.pattern_id)
    assert stored.pattern == login


def untimed(pattern: Any) -> Any:
    """A pattern without what differs from one storing of it to the next."""
    copy = type(pattern)()
    copy.CopyFrom(pattern)
    for name in ("create_time", "update_time", "etag"):
        copy.ClearField(name)
    return copy


async def test_extracting_again_changes_nothing_and_a_dry_run_tells_the_same(lot: Lot):
    await logins(lot)
    dry = await lot.patterns.ExtractPatterns(dry_run=True)
    assert not (await lot.patterns.ListPatterns()).patterns
    first = await lot.patterns.ExtractPatterns()
    assert [untimed(pattern) for pattern in dry.patterns] == [
        untimed(pattern) for pattern in first.patterns
    ]
    assert dry.episode_count == first.episode_count
    if lot.own_clock:
        lot.own_clock.advance(60)
    assert await lot.patterns.ExtractPatterns() == first
    assert list((await lot.patterns.ListPatterns()).patterns) == list(first.patterns)


async def test_a_regex_narrows_and_is_stored(lot: Lot):
    await logins(lot)
    await recorded(lot, "Fix the logo", task_type="art")
    answer = await lot.patterns.ExtractPatterns(task_type_pattern="LOG.?IN")
    assert answer.episode_count == 4
    [pattern] = answer.patterns
    assert pattern.task_type_pattern == "LOG.?IN"


@pytest.mark.parametrize("regex", ["(a", r"(?<=a)b", r"a\1", "[\\p{L}]{900}"])
async def test_a_regex_that_re2_refuses_is_refused_wherever_it_is_given(lot: Lot, regex: str):
    saved = await lot.patterns.SavePattern(pattern={"task": "t"})
    bad = {"task": "u", "task_type_pattern": regex}
    asks = {
        "task_type_pattern": lot.patterns.ExtractPatterns(task_type_pattern=regex),
        "pattern.task_type_pattern": lot.patterns.SavePattern(pattern=bad),
    }
    edit = lot.patterns.UpdatePattern(pattern_id=saved.pattern.pattern_id, pattern=bad)
    for field, ask in [*asks.items(), ("pattern.task_type_pattern", edit)]:
        failed = await failure(ask)
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
        assert failed.fields == {field: "regex.re2"}
        assert "RE2 rejects this regular expression:" in failed.message
    batch = await lot.patterns.BatchSavePatterns(
        items=[{"pattern": bad}, {"pattern": {"task": "v"}}]
    )
    assert (batch.failed_count, batch.created_count) == (1, 1)
    assert len((await lot.patterns.ListPatterns()).patterns) == 2


async def test_min_samples_counts_distinct_episodes_of_the_way_taught(lot: Lot):
    await logins(lot, 2)
    await recorded(lot, "Add login page", task_type="login", status=FAILED)
    assert not (await lot.patterns.ExtractPatterns()).patterns
    assert len((await lot.patterns.ExtractPatterns(min_samples=2)).patterns) == 1
    await recorded(lot, "Add login page", task_type="login")
    assert len((await lot.patterns.ExtractPatterns()).patterns) == 1


async def test_episodes_of_other_namespaces_are_read_just_when_they_are_named(lot: Lot):
    other = lot.on(f"{lot.namespace}-other")
    await logins(lot, 2)
    await logins(other, 2)
    assert not (await lot.patterns.ExtractPatterns()).patterns
    names = [lot.namespace, other.namespace]
    answer = await lot.patterns.ExtractPatterns(namespaces=names)
    assert answer.episode_count == 4
    [pattern] = answer.patterns
    assert pattern.namespace == lot.namespace
    assert list(pattern.metadata["extraction"]["namespaces"]) == sorted(names)
    assert not (await other.patterns.ListPatterns()).patterns


async def test_failures_teach_what_to_avoid_and_fast_runs_what_is_fast(lot: Lot):
    for number in range(12):
        fast = number % 2 == 0
        await recorded(
            lot,
            f"Build image {number}",
            *(["cache"] if fast else ["fetch"]),
            task_type="build",
            metrics={"duration_seconds": 1 if fast else 9},
        )
        await recorded(
            lot,
            f"Build image {number}",
            "force",
            task_type="build",
            status=FAILED,
            error={"type": "OOM"},
        )
    [avoid] = (await lot.patterns.ExtractPatterns(pattern_type="PATTERN_TYPE_FAILURE")).patterns
    assert avoid.failure_indicators == ["tool: force"]
    assert avoid.task.startswith("Avoid what makes build tasks fail")
    assert "OOM: ended 12 of 12 failures." in avoid.recommended_context
    assert avoid.outcomes.success_rate == 0.5
    requested = await lot.patterns.ExtractPatterns(pattern_type="PATTERN_TYPE_OPTIMIZATION")
    [faster] = requested.patterns
    assert (faster.success_indicators, faster.failure_indicators) == (
        ["tool: cache"],
        ["tool: fetch"],
    )


async def test_an_end_that_asks_for_it_stores_what_the_episode_teaches(lot: Lot):
    for number in range(4):
        name = f"e{number}"
        await lot.episodes.StartEpisode(
            episode={"task": f"Add login page {number}", "task_type": "login"}, episode_id=name
        )
        await lot.episodes.RecordEvent(episode_id=name, event=calls("editor")[0])
        ended = await lot.episodes.EndEpisode(
            episode_id=name, status=SUCCEEDED, extract_knowledge=True, request_id=name
        )
        kinds = [pattern.kind for pattern in ended.extracted_patterns]
        assert kinds == [pattern_pb2.PATTERN_KIND_TASK, *([LEARNED] if number >= 2 else [])]
        assert [a.tool for a in ended.extracted_patterns[0].actions] == ["editor"]
        assert ended.extracted_patterns[0].source_episode_ids == [name]
    again = await lot.episodes.EndEpisode(
        episode_id="e3", status=SUCCEEDED, extract_knowledge=True, request_id="e3"
    )
    assert again == ended
    assert again.extracted_patterns[1].metadata["extraction"]["episode_count"] == 4
    assert len((await lot.patterns.ListPatterns()).patterns) == 5


async def test_the_same_done_again_counts_once_for_each_episode(lot: Lot):
    for number in range(3):
        answer = await recorded(lot, "Tidy up", "broom", extract_knowledge=True)
        assert answer.extracted_patterns[0].outcomes.usage_count == number
    task, learned = answer.extracted_patterns
    assert len(task.source_episode_ids) == 3
    assert learned.kind == LEARNED
    failed = await recorded(lot, "Tidy up", status=FAILED, extract_knowledge=True)
    assert not failed.extracted_patterns
    assert not failed.extracted_error_solutions


async def test_an_end_that_asks_for_it_stores_the_errors_that_the_episode_met(lot: Lot):
    await lot.episodes.StartEpisode(
        episode={"task": "Make it green", "category": "testing"}, episode_id="e"
    )
    events = [
        {"tool": "pytest", "error": {"type": "KeyError", "message": "'a'"}},
        {"tool": "editor", "note": "use get", "args": {"line": 3}},
        {"tool": "pytest"},
    ]
    for data in events:
        await lot.episodes.RecordEvent(
            episode_id="e", event={"event_type": "tool_call", "data": data}
        )
    ending = {
        "episode_id": "e",
        "status": FAILED,
        "error": {"type": "OSError", "message": "disk full"},
        "extract_knowledge": True,
        "request_id": "r",
    }
    ended = await lot.episodes.EndEpisode(**ending)
    overcome, unresolved = ended.extracted_error_solutions
    assert overcome.steps == ['tool_call(editor): use get {"line": 3}']
    assert (overcome.error_type, overcome.error_message) == ("KeyError", "'a'")
    assert overcome.context == "Task: Make it green\nFailed at: tool_call(pytest)"
    assert (overcome.categories, overcome.tags) == (["testing"], ["extracted"])
    assert (overcome.worked, overcome.outcomes.success_rate) == (True, 1)
    assert overcome.source_episode_ids == ["e"]
    assert (unresolved.error_type, unresolved.error_message) == ("OSError", "disk full")
    assert (unresolved.worked, list(unresolved.steps)) == (False, [])
    assert await lot.episodes.EndEpisode(**ending) == ended
    listed = await lot.memories.ListErrorSolutions(filter={"tags_any": ["extracted"]})
    assert list(listed.error_solutions) == [unresolved, overcome]
    assert not (await lot.patterns.ListPatterns()).patterns


async def test_a_recorded_episode_stores_its_errors_just_when_it_is_asked_to(lot: Lot):
    events = [
        {"event_type": "tool_call", "data": {"tool": "curl", "error": "connection refused"}},
        {"event_type": "tool_call", "data": {"tool": "curl"}},
    ]
    requested = {"episode": {"task": "Ship", "status": SUCCEEDED}, "events": events}
    plain = await lot.episodes.RecordEpisode(**requested)
    assert not plain.extracted_error_solutions
    assert not (await lot.memories.ListErrorSolutions()).error_solutions
    answer = await lot.episodes.RecordEpisode(**requested, extract_knowledge=True)
    [solution] = answer.extracted_error_solutions
    assert (solution.error_message, solution.steps) == ("connection refused", ["tool_call(curl)"])
    assert len(answer.extracted_patterns) == 1
    assert list((await lot.memories.ListErrorSolutions()).error_solutions) == [solution]
