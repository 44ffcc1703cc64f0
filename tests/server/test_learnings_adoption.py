"""Whether what is recalled is used and helps, and what learning gains, in the report."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.holdout import Arm, gain, in_holdout
from lot_grpc.pb.lot.v1 import outcome_pb2, resource_kind_pb2
from lot_grpc.services.learning import adoption as reading
from tests.server.service import Lot
from tests.server.wire import failure

KIND: Any = resource_kind_pb2
TASK = "deploy the web site to the server"
SUCCESS, FAILURE = outcome_pb2.OUTCOME_SUCCESS, outcome_pb2.OUTCOME_FAILURE
PARTIAL = outcome_pb2.OUTCOME_PARTIAL
DAY = 24 * 3600


async def fill(lot: Lot) -> None:
    for pattern_id in ("p", "q"):
        await lot.patterns.SavePattern(
            pattern={"task": f"{TASK} {pattern_id}"}, pattern_id=pattern_id
        )
    await lot.memories.CreateMemory(memory={"content": TASK}, memory_id="m")


async def recalled(lot: Lot) -> str:
    return str((await lot.patterns.RecallPatterns(query=TASK)).retrieval_id)


async def report(lot: Lot, **requested: Any) -> Any:
    return (await lot.learning.GetPerformanceReport(**requested)).report


async def used(lot: Lot, retrieval_id: str, outcome: int, *pattern_ids: str) -> str:
    answer = await lot.patterns.RecordOutcome(
        pattern_ids=pattern_ids, retrieval_id=retrieval_id, outcome=outcome
    )
    return str(answer.outcome_id)


def counts(kinds: Any) -> dict[str, tuple[int, int, int]]:
    return {
        KIND.ResourceKind.Name(one.resource_kind).removeprefix("RESOURCE_KIND_"): (
            one.shown_count,
            one.used_count,
            one.helped_count,
        )
        for one in kinds
    }


async def test_what_was_shown_used_and_helped_is_counted_by_kind_and_by_day(lot):
    await fill(lot)
    first = await recalled(lot)
    await used(lot, first, SUCCESS, "p")
    lot.clock.advance(DAY)
    second, third = await recalled(lot), await recalled(lot)
    await used(lot, second, FAILURE, "p")
    await used(lot, second, SUCCESS, "p")  # the latest use counts
    await used(lot, third, PARTIAL, "q")
    await lot.memories.SearchMemories(query=TASK)
    found = (await report(lot)).adoption
    assert (found.retrieval_count, found.outcome_retrieval_count) == (4, 3)
    assert counts(found.kinds) == {"PATTERN": (6, 3, 2), "MEMORY": (1, 0, 0)}
    assert [(one.retrieval_count, counts(one.kinds)) for one in found.days] == [
        (1, {"PATTERN": (2, 1, 1)}),
        (3, {"PATTERN": (4, 2, 1), "MEMORY": (1, 0, 0)}),
    ]
    assert all(one.start_time.seconds % DAY == 0 for one in found.days)
    assert found.end_time.seconds - found.start_time.seconds == 7 * DAY
    assert not found.truncated


async def test_a_correction_counts_as_it_stands(lot):
    await fill(lot)
    wrong = await used(lot, await recalled(lot), FAILURE, "p")
    await lot.patterns.CorrectOutcome(outcome_id=wrong, outcome=SUCCESS)
    assert counts((await report(lot)).adoption.kinds) == {"PATTERN": (2, 1, 1)}


async def test_the_time_range_and_the_namespace_narrow_what_is_counted(lot):
    await fill(lot)
    await recalled(lot)
    lot.clock.advance(DAY)
    middle = {"seconds": lot.clock.now() // 1_000_000}
    await recalled(lot)
    assert (await report(lot)).adoption.retrieval_count == 2
    assert (await report(lot, start_time=middle)).adoption.retrieval_count == 1
    assert (await report(lot, end_time=middle)).adoption.retrieval_count == 1
    other = await report(lot, namespace=f"{lot.namespace}-2")
    assert other.adoption.retrieval_count == 0
    assert "recalled" not in other.markdown


async def test_times_that_cross_are_refused(lot):
    same = {"seconds": 5}
    error = await failure(lot.learning.GetPerformanceReport(start_time=same, end_time=same))
    assert error.reason == "REQUEST_INVALID"
    assert "start_time must be before end_time" in error.message


async def test_only_the_latest_are_read_and_that_is_said(lot, monkeypatch):
    monkeypatch.setattr(reading, "MOST_READ", 3)
    await fill(lot)
    for _ in range(3):
        await recalled(lot)
    assert not (await report(lot)).adoption.truncated
    await used(lot, await recalled(lot), SUCCESS, "p")
    found = await report(lot)
    assert (found.adoption.retrieval_count, found.adoption.truncated) == (3, True)
    assert found.adoption.outcome_retrieval_count == 1
    assert "only the latest are counted" in found.markdown


async def test_without_a_holdout_nothing_is_compared(lot):
    await fill(lot)
    await used(lot, await recalled(lot), SUCCESS, "p")
    found = await report(lot)
    assert not found.HasField("holdout")
    assert "What learning gains" not in found.markdown


async def test_both_arms_and_the_gain_with_its_interval_are_in_the_report(lot):
    await fill(lot)
    await lot.admin.UpdateNamespacePolicy(policy={"holdout_share": 0.5})
    arms = {True: Arm(), False: Arm()}
    numbers = {True: 0, False: 0}
    for number in range(30):
        retrieval_id = await recalled(lot)
        held = in_holdout(retrieval_id, 0.5)
        numbers[held] += 1
        if number % 5 == 4:
            continue
        worked = number % 3 > 0 if held else number % 7 > 0
        await used(lot, retrieval_id, SUCCESS if worked else FAILURE, "p")
        value = float(worked)
        if number % 5 == 0:  # two outcomes of one retrieval count as their mean
            await used(lot, retrieval_id, PARTIAL, "p")
            value = (value + 0.5) / 2
        arms[held] = arms[held].record(value)
    found = await report(lot)
    expected = gain(arms[False], arms[True])
    assert expected is not None
    for told, held in ((found.holdout.learned, False), (found.holdout.holdout, True)):
        assert told.retrieval_count == numbers[held]
        assert told.outcome_retrieval_count == arms[held].count
        assert told.mean_value == pytest.approx(arms[held].mean)
    assert found.holdout.gain == pytest.approx(expected.estimate)
    assert found.holdout.gain_lower == pytest.approx(expected.lower)
    assert found.holdout.gain_upper == pytest.approx(expected.upper)
    assert f"Gain: {expected.estimate:+.3f} (95 % interval" in found.markdown


async def test_the_gain_is_unset_until_both_arms_have_an_outcome(lot):
    await fill(lot)
    await lot.admin.UpdateNamespacePolicy(policy={"holdout_share": 0.5})
    await recalled(lot)
    found = await report(lot)
    assert found.HasField("holdout")
    assert not found.holdout.HasField("gain")
    assert "The gain is unknown until both have outcomes" in found.markdown
