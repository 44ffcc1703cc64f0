"""PrunePatterns, and the sums that tell what to prune, on the wire."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import pattern_pb2
from tests.server.patterns import FAILURE, PARTIAL, SUCCESS, saved
from tests.server.wire import failure


async def three(lot) -> None:
    for name, outcome, pinned in (
        ("good", SUCCESS, False), ("bad", FAILURE, False), ("pinned", FAILURE, True),
    ):  # fmt: skip
        await saved(lot, name, pattern_id=name, pinned=pinned)
        await lot.patterns.RecordOutcome(pattern_ids=[name], outcome=outcome)


async def test_a_dry_run_and_then_the_run(lot):
    await three(lot)
    dry = await lot.patterns.PrunePatterns(max_success_rate=0.7, dry_run=True)
    assert (dry.deleted_count, list(dry.pattern_ids), dry.remaining_count) == (1, ["bad"], 2)
    assert len((await lot.patterns.ListPatterns()).patterns) == 3
    run = await lot.patterns.PrunePatterns(max_success_rate=0.7)
    assert (run.deleted_count, list(run.pattern_ids), run.remaining_count) == (1, ["bad"], 2)
    assert (run.skipped_count, run.oldest_remaining_time) == (0, dry.oldest_remaining_time)
    assert run.elapsed.ToNanoseconds() > 0
    again = await lot.patterns.PrunePatterns(max_success_rate=0.7)
    assert (again.deleted_count, list(again.pattern_ids)) == (0, [])
    left = (await lot.patterns.ListPatterns()).patterns
    assert {pattern.pattern_id for pattern in left} == {"good", "pinned"}
    assert again.oldest_remaining_time == min(
        (p.create_time for p in left), key=lambda t: t.ToNanoseconds()
    )


async def test_the_best_are_kept_within_the_filter(lot):
    await three(lot)
    await saved(lot, "other", pattern_id="other", language="go")
    answer = await lot.patterns.PrunePatterns(filter={"languages": ["go"]}, max_remaining=1)
    assert answer.deleted_count == 0
    answer = await lot.patterns.PrunePatterns(max_remaining=1, min_usage_count=1)
    assert list(answer.pattern_ids) == ["bad"]
    answer = await lot.patterns.PrunePatterns(filter={"languages": ["go"]}, max_success_rate=1)
    assert (list(answer.pattern_ids), answer.remaining_count) == (["other"], 0)
    assert not answer.HasField("oldest_remaining_time")


@pytest.mark.parametrize(
    "requested", [{}, {"dry_run": True}, {"min_usage_count": 3}, {"filter": {}}]
)
async def test_without_a_criterion_it_is_refused_with_what_to_do(lot, requested):
    await three(lot)
    failed = await failure(lot.patterns.PrunePatterns(**requested))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert "max_success_rate, max_remaining or both" in str(failed.fields) + failed.message
    assert len((await lot.patterns.ListPatterns()).patterns) == 3


async def test_sums_tell_use_and_success_by_pattern_and_by_use(lot):
    code = pattern_pb2.PATTERN_KIND_CODE
    await saved(lot, "a", pattern_id="a", task_type="api", initial_success_rate=0.5)
    await saved(lot, "b", pattern_id="b", task_type="api", pinned=True)
    await saved(
        lot, "c", pattern_id="c", kind=code, code_kind=pattern_pb2.CODE_KIND_CLASS,
        pattern_type=pattern_pb2.PATTERN_TYPE_FAILURE,
    )  # fmt: skip
    for outcome in (SUCCESS, SUCCESS, FAILURE, PARTIAL):
        await lot.patterns.RecordOutcome(pattern_ids=["a"], outcome=outcome)
    await lot.patterns.RecordOutcome(pattern_ids=["b"], outcome=FAILURE)
    stats = await lot.patterns.GetPatternStats()
    rate = 0.5
    for value in (1, 1, 0, 0.5):
        rate = 0.3 * value + 0.7 * rate
    assert (stats.total_count, stats.used_count, stats.pinned_count) == (3, 2, 1)
    assert stats.min_success_rate == pytest.approx(rate, abs=0.001)
    assert stats.average_used_success_rate == pytest.approx((rate + 0.7) / 2, abs=0.001)
    assert stats.average_success_rate == pytest.approx((rate + 0.7 + 1) / 3, abs=0.001)
    assert stats.max_success_rate == 1
    counts = (stats.total_success_count, stats.total_failure_count, stats.total_partial_count)
    assert counts == (2, 2, 1)
    assert stats.total_usage_count == 5
    assert stats.success_share == pytest.approx(0.5)
    assert dict(stats.by_pattern_type) == {"SUCCESS": 2, "FAILURE": 1}
    assert dict(stats.by_code_kind) == {"CLASS": 1}
    assert dict(stats.by_task_type) == {"api": 2}
    narrowed = await lot.patterns.GetPatternStats(filter={"kinds": [code]})
    assert (narrowed.total_count, narrowed.used_count, narrowed.total_usage_count) == (1, 0, 0)
    assert not narrowed.HasField("average_used_success_rate")
    assert not narrowed.HasField("success_share")
    assert narrowed.min_success_rate == 1
    assert dict(narrowed.by_task_type) == {}
