"""BatchSavePatterns on the wire."""

from __future__ import annotations

from typing import Any

from google.rpc import error_details_pb2

from tests.server.patterns import PB, listed, saved
from tests.server.service import serving
from tests.server.wire import failure


async def test_items_of_a_batch_succeed_and_fail_by_themselves(lot):
    await saved(lot, "taken", pattern_id="p")
    answer = await lot.patterns.BatchSavePatterns(
        items=[
            {"pattern": {"task": "one"}, "initial_success_rate": 0.5},
            {"pattern": {"task": "other"}, "pattern_id": "p"},
            {"pattern": {"task": "ONE"}},
            {"pattern": {"task": "t"}, "pattern_id": "s", "dedupe": PB.DEDUPE_SEMANTIC},
            {"pattern": {"task": "t", "pattern_id": "x"}, "pattern_id": "y"},
            {"pattern": {"task": "long " * 9000}, "request_id": "r"},
        ]
    )
    kinds = [result.WhichOneof("result") for result in answer.results]
    assert kinds == ["response", "error", "response", "error", "error", "response"]
    assert (answer.created_count, answer.failed_count) == (2, 3)
    one, taken, repeat, semantic, beside, long = answer.results
    assert one.response.created
    assert not repeat.response.created
    assert repeat.response.pattern.pattern_id == one.response.pattern.pattern_id
    assert repeat.response.pattern.outcomes.usage_count == 1
    assert long.response.notices[0].field == "pattern.task"
    reasons = [_reason(item.error) for item in (taken, semantic, beside)]
    assert reasons == ["PATTERN_ID_IN_USE", "REQUEST_INVALID", "REQUEST_INVALID"]
    assert [item.error.code for item in (taken, semantic, beside)] == [6, 3, 3]
    assert all(item.error.message for item in (taken, semantic, beside))


def _reason(status: Any) -> str:
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "lot.v1"
    return str(info.reason)


async def test_a_batch_again_with_its_request_ids_changes_nothing(lot):
    items = [{"pattern": {"task": f"t{n}"}, "request_id": f"r{n}"} for n in range(5)]
    first = await lot.patterns.BatchSavePatterns(items=items)
    again = await lot.patterns.BatchSavePatterns(items=items)
    assert again == first
    assert len(await listed(lot)) == 5


async def test_a_request_id_twice_in_one_batch_is_a_repeat(lot):
    answer = await lot.patterns.BatchSavePatterns(
        items=[
            {"pattern": {"task": "one"}, "request_id": "r"},
            {"pattern": {"task": "one"}, "request_id": "r"},
            {"pattern": {"task": "two"}, "request_id": "r"},
        ]
    )
    one, again, other = answer.results
    assert again.response == one.response
    assert again.response.pattern.outcomes.usage_count == 0
    assert _reason(other.error) == "REQUEST_ID_REUSED"
    assert (answer.created_count, answer.failed_count) == (1, 1)
    assert len(await listed(lot)) == 1


async def test_a_batch_against_the_contract_is_refused_whole_and_names_the_item(lot):
    failed = await failure(
        lot.patterns.BatchSavePatterns(
            items=[{"pattern": {"task": "good"}}, {"pattern": {"title": "no task"}}, {}]
        )
    )
    assert failed.fields == {
        "items[1].pattern.task": "pattern.task.required",
        "items[2].pattern": "required",
    }
    assert await listed(lot) == []
    for count in (0, 501):
        failed = await failure(
            lot.patterns.BatchSavePatterns(items=[{"pattern": {"task": "t"}}] * count)
        )
        assert set(failed.fields) == {"items"}


async def test_a_batch_over_the_operators_limit_is_refused_with_it():
    async with serving(max_batch_items=2) as lot:
        items = [{"pattern": {"task": f"t{n}"}} for n in range(3)]
        failed = await failure(lot.patterns.BatchSavePatterns(items=items))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")
        assert failed.metadata == {"limit": "2", "given": "3"}
        assert (await lot.patterns.BatchSavePatterns(items=items[:2])).created_count == 2
        assert (await lot.admin.GetServerInfo()).limits.max_batch_items == 2
