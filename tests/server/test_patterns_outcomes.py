"""RecordOutcome and GetPatternStats on the wire."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.server.patterns import FAILURE, PARTIAL, PB, SUCCESS, P, saved
from tests.server.wire import failure


async def test_outcomes_move_the_counters_the_rate_and_the_bound(lot):
    await saved(lot, pattern_id="p", initial_success_rate=0.5)
    for outcome, seconds in ((SUCCESS, 2), (FAILURE, None), (PARTIAL, 4)):
        answer = await lot.patterns.RecordOutcome(
            pattern_ids=["p"],
            outcome=outcome,
            reward=-1,
            note="n",
            duration=None if seconds is None else timedelta(seconds=seconds),
        )
    [pattern] = answer.patterns
    told = pattern.outcomes
    assert (told.usage_count, told.success_count, told.failure_count, told.partial_count) == (
        3,
        1,
        1,
        1,
    )
    rate = 0.5
    for value in (1.0, 0.0, 0.5):
        rate = 0.3 * value + 0.7 * rate
    assert told.success_rate == pytest.approx(rate)
    assert told.reliability == pytest.approx(0.1253, abs=0.0001)  # Wilson, 1.5 of 3
    assert told.average_duration.ToTimedelta() == timedelta(seconds=3)
    assert told.last_used_time.seconds > 0
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern == pattern


async def test_an_outcome_does_not_touch_the_time_of_the_last_edit(lot):
    pattern = await saved(lot, pattern_id="p")
    if lot.own_clock:
        lot.own_clock.advance(5)
    [after] = (await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS)).patterns
    assert after.update_time == pattern.update_time
    assert after.outcomes.last_used_time != pattern.outcomes.last_used_time


async def test_an_outcome_counts_for_each_pattern_that_was_used(lot):
    for name in ("a", "b", "c"):
        await saved(lot, name, pattern_id=name)
    answer = await lot.patterns.RecordOutcome(pattern_ids=["c", "a"], outcome=SUCCESS)
    assert [p.pattern_id for p in answer.patterns] == ["c", "a"]
    counts = {p.pattern_id: p.outcomes.usage_count for p in answer.patterns}
    assert counts == {"a": 1, "c": 1}
    assert (await lot.patterns.GetPattern(pattern_id="b")).pattern.outcomes.usage_count == 0


async def test_an_outcome_for_an_unknown_pattern_counts_for_none(lot):
    await saved(lot, pattern_id="p")
    failed = await failure(
        lot.patterns.RecordOutcome(pattern_ids=["p", "nope"], outcome=SUCCESS, request_id="r")
    )
    assert (failed.code, failed.reason) == ("NOT_FOUND", "PATTERN_NOT_FOUND")
    assert failed.metadata["id"] == "nope"
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.outcomes.usage_count == 0
    await saved(lot, "now it is", pattern_id="nope")
    answer = await lot.patterns.RecordOutcome(
        pattern_ids=["p", "nope"], outcome=SUCCESS, request_id="r"
    )
    assert [p.outcomes.usage_count for p in answer.patterns] == [1, 1]


async def test_an_outcome_may_name_its_recall_or_its_query(lot):
    await saved(lot, pattern_id="p")
    recall = await lot.patterns.RecallPatterns(query="sort")
    for requested in ({"retrieval_id": recall.retrieval_id}, {"query": "sort"}, {}):
        await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS, **requested)
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.outcomes.usage_count == 3


async def test_an_unknown_recall_needs_the_query_as_well(lot):
    await saved(lot, pattern_id="p")
    failed = await failure(
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS, retrieval_id="r-nope")
    )
    assert (failed.code, failed.reason) == ("NOT_FOUND", "RETRIEVAL_NOT_FOUND")
    assert failed.metadata == {"namespace": lot.namespace, "id": "r-nope"}
    assert "query" in failed.message
    answer = await lot.patterns.RecordOutcome(
        pattern_ids=["p"], outcome=SUCCESS, retrieval_id="r-nope", query="sort"
    )
    assert answer.patterns[0].outcomes.usage_count == 1


async def test_a_recall_is_forgotten_after_seven_days(lot):
    clock = lot.clock
    await saved(lot, pattern_id="p")
    recall = await lot.patterns.RecallPatterns(query="sort")
    outcome = {"pattern_ids": ["p"], "outcome": SUCCESS, "retrieval_id": recall.retrieval_id}
    await lot.own_services.runtime.retrievals.flush()  # as housekeeping does each second
    clock.advance(7 * 24 * 3600 - 1)
    await lot.patterns.RecordOutcome(**outcome)
    clock.advance(2)  # its time is that of its sort key, which is a little later
    failed = await failure(lot.patterns.RecordOutcome(**outcome))
    assert failed.reason == "RETRIEVAL_NOT_FOUND"


async def test_a_retried_outcome_counts_once_and_other_content_is_refused(lot):
    await saved(lot, pattern_id="p")
    for _ in range(3):
        answer = await lot.patterns.RecordOutcome(
            pattern_ids=["p"], outcome=SUCCESS, request_id="r"
        )
        assert answer.patterns[0].outcomes.usage_count == 1
    failed = await failure(
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=FAILURE, request_id="r")
    )
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    assert failed.metadata == {"request_id": "r", "method": "RecordOutcome"}


async def test_retries_of_one_outcome_at_once_count_once(lot):
    await saved(lot, pattern_id="p")
    await asyncio.gather(
        *(
            lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS, request_id="r")
            for _ in range(10)
        )
    )
    pattern = (await lot.patterns.GetPattern(pattern_id="p")).pattern
    assert pattern.outcomes.usage_count == 1


async def test_a_request_id_is_remembered_for_a_day(lot):
    clock = lot.clock
    await saved(lot, pattern_id="p")
    for seconds, count in ((0, 1), (24 * 3600 - 1, 1), (1, 2)):
        clock.advance(seconds)
        answer = await lot.patterns.RecordOutcome(
            pattern_ids=["p"], outcome=SUCCESS, request_id="r"
        )
        assert answer.patterns[0].outcomes.usage_count == count


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"pattern_ids": []}, ""),
        ({"pattern_ids": [], "query": "q"}, ""),
        ({"pattern_ids": ["p", "p"]}, "pattern_ids"),
        ({"memory_ids": ["m", "m"]}, "memory_ids"),
        ({"episode_ids": ["no id"]}, "episode_ids[0]"),
        ({"error_solution_ids": [""]}, "error_solution_ids[0]"),
        ({"memory_ids": [f"m{n}" for n in range(100)]}, ""),
        ({"pattern_ids": ["p", "no id"]}, "pattern_ids[1]"),
        ({"outcome": 0}, "outcome"),
        ({"outcome": 77}, "outcome"),
        ({"reward": 1.01}, "reward"),
        ({"duration": timedelta(seconds=-1)}, "duration"),
    ],
)
async def test_an_outcome_against_the_contract_is_refused(lot, fields, path):
    await saved(lot, pattern_id="p")
    fields = {"pattern_ids": ["p"], "outcome": SUCCESS} | fields
    failed = await failure(lot.patterns.RecordOutcome(**fields))
    assert failed.reason == "REQUEST_INVALID"
    assert set(failed.fields) == {path}


# --- sums -------------------------------------------------------------------------------------


async def test_stats_sum_up_what_the_filter_lets_through(lot):
    await saved(lot, "one", pattern_id="a", language="py", category="x", initial_success_rate=0.5)
    await saved(lot, "two", pattern_id="b", language="python", kind=P.PATTERN_KIND_CODE)
    await saved(lot, "three", pattern_id="c", language="go", category="x")
    for pattern_ids in (["a"], ["a", "b"]):
        await lot.patterns.RecordOutcome(pattern_ids=pattern_ids, outcome=SUCCESS)
    told = await lot.patterns.GetPatternStats()
    assert told.total_count == 3
    assert told.max_success_rate == 1.0
    rate = 1 - 0.5 * 0.7 * 0.7
    assert told.average_success_rate == pytest.approx((rate + 2) / 3, abs=0.001)
    assert told.total_usage_count == 3
    assert told.most_used_pattern_id == "a"
    assert dict(told.by_language) == {"python": 2, "go": 1}
    assert dict(told.by_category) == {"x": 2}
    assert dict(told.by_kind) == {"TASK": 2, "CODE": 1}
    only = await lot.patterns.GetPatternStats(filter={"languages": ["go"]})
    assert (only.total_count, only.total_usage_count, only.most_used_pattern_id) == (1, 0, "")


async def test_stats_of_nothing_have_no_rates(lot):
    told = await lot.patterns.GetPatternStats()
    assert told == PB.GetPatternStatsResponse()
    assert not told.HasField("average_success_rate")
