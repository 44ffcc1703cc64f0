"""PatternService on the wire: what each call answers, and each error that its comment names."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2, pattern_service_pb2
from tests.contract.clock import SECOND
from tests.server.service import Lot, output_only, serving
from tests.server.wire import failure

GIVEN_BY_SERVER = ("pattern_id", "outcomes", "namespace", "etag", "create_time", "update_time")
PB: Any = pattern_service_pb2
P: Any = pattern_pb2
SUCCESS, FAILURE, PARTIAL = (
    outcome_pb2.OUTCOME_SUCCESS,
    outcome_pb2.OUTCOME_FAILURE,
    outcome_pb2.OUTCOME_PARTIAL,
)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def whole_pattern() -> Any:
    """A pattern with every field that a caller can set."""
    return P.Pattern(
        kind=P.PATTERN_KIND_CODE,
        code_kind=P.CODE_KIND_ERROR_HANDLER,
        pattern_type=P.PATTERN_TYPE_OPTIMIZATION,
        title="Retry with jitter",
        task="call a flaky service",
        context="behind a load balancer",
        actions=[{"tool": "http", "args": {"tries": 3, "codes": [502, None, "x"]}, "note": "n"}],
        code="async def call(): ...",
        language="Python",
        category="integration",
        task_type="backend",
        task_type_pattern="call .* service",
        complexity=outcome_pb2.COMPLEXITY_HIGH,
        approach="incremental",
        success_indicators=["200"],
        failure_indicators=["timeout"],
        recommended_context="idempotent calls",
        success_factors=["jitter"],
        tools=["http", "clock"],
        tags=["net", "naïve 漢字"],
        labels={"team.name/x": "core=1", "empty": ""},
        metadata={"a.b": {"deep": [1, 2.5, True, None, {"": "x"}]}, "": "empty key"},
        pinned=True,
        confidence=0.0,
        source_episode_ids=["e-1"],
        source_pattern_ids=["p-1", "p-1"],
        parent_pattern_id="p-0",
        supersedes="p-9",
        expire_time=LATER,
    )


async def saved(lot: Lot, task: str = "sort a list", **fields: Any) -> Any:
    """A pattern that was saved; ``pattern_id`` and the like go beside it."""
    beside = {
        name: fields.pop(name)
        for name in ("pattern_id", "request_id", "dedupe", "initial_success_rate", "namespace")
        if name in fields
    }
    answer = await lot.patterns.SavePattern(pattern={"task": task, **fields}, **beside)
    return answer.pattern


async def listed(lot: Lot, **asked: Any) -> list[str]:
    answer = await lot.patterns.ListPatterns(page_size=1000, **asked)
    return [pattern.pattern_id for pattern in answer.patterns]


async def recalled(lot: Lot, query: str, **asked: Any) -> list[str]:
    answer = await lot.patterns.RecallPatterns(query=query, limit=100, **asked)
    return [hit.pattern.pattern_id for hit in answer.hits]


# --- saving -----------------------------------------------------------------------------------


async def test_every_field_comes_back_as_it_was_saved(lot):
    given = whole_pattern()
    unset = {f.name for f in P.Pattern.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == {*GIVEN_BY_SERVER, "ttl"}, "the test does not set every field of a pattern"
    answer = await lot.patterns.SavePattern(pattern=given, initial_success_rate=0.25)
    assert answer.created
    given.language = "python"  # languages have one name
    for again in (
        answer.pattern,
        (await lot.patterns.GetPattern(pattern_id=answer.pattern.pattern_id)).pattern,
        (await lot.patterns.ListPatterns()).patterns[0],
        (await lot.patterns.RecallPatterns(query=given.task)).hits[0].pattern,
    ):
        assert output_only(again, *GIVEN_BY_SERVER) == given
        assert again.namespace == lot.namespace
        assert again.etag
        assert again.create_time.seconds > 0
        assert again.create_time == again.update_time
        assert again.outcomes == outcome_pb2.Outcomes(success_rate=0.25)


async def test_what_only_the_server_gives_is_ignored_when_saving(lot):
    answer = await lot.patterns.SavePattern(
        pattern={
            "task": "t",
            "outcomes": {"usage_count": 99, "success_rate": 0.1},
            "namespace": "elsewhere",
            "etag": "made-up",
            "create_time": datetime(1999, 1, 1, tzinfo=UTC),
            "update_time": datetime(1999, 1, 1, tzinfo=UTC),
        }
    )
    pattern = answer.pattern
    assert pattern.outcomes == outcome_pb2.Outcomes(success_rate=1.0)
    assert pattern.namespace == lot.namespace
    assert pattern.etag != "made-up"
    assert pattern.create_time.ToDatetime(UTC).year > 2000


async def test_an_id_inside_must_be_the_one_beside(lot):
    same = await lot.patterns.SavePattern(
        pattern={"task": "t", "pattern_id": "p-1"}, pattern_id="p-1"
    )
    assert same.pattern.pattern_id == "p-1"
    for beside in ("p-2", ""):
        failed = await failure(
            lot.patterns.SavePattern(pattern={"task": "t", "pattern_id": "p-1"}, pattern_id=beside)
        )
        assert failed.reason == "REQUEST_INVALID"
        assert failed.fields == {"pattern.pattern_id": "pattern_id.beside"}


async def test_the_same_content_again_counts_as_one_success(lot):
    first = await lot.patterns.SavePattern(
        pattern={"task": "Sort  a\tlist", "title": "one"}, initial_success_rate=0.5
    )
    again = await lot.patterns.SavePattern(
        pattern={"task": "sort a LIST ", "title": "two"}, initial_success_rate=0.0
    )
    assert (first.created, again.created) == (True, False)
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.title == "one"
    assert again.pattern.outcomes.usage_count == again.pattern.outcomes.success_count == 1
    assert again.pattern.outcomes.success_rate == pytest.approx(0.5 * 0.7 + 0.3)
    assert again.pattern.etag == first.pattern.etag


@pytest.mark.parametrize(
    "other", [{"code": "x"}, {"language": "go"}, {"actions": [{"tool": "t"}]}, {"task": "other"}]
)
async def test_other_content_is_another_pattern(lot, other):
    await saved(lot, "sort a list")
    answer = await lot.patterns.SavePattern(pattern={"task": "sort a list"} | other)
    assert answer.created


async def test_dedupe_none_stores_another_one(lot):
    first = await saved(lot)
    second = await saved(lot, dedupe=PB.DEDUPE_NONE)
    assert len({first.pattern_id, second.pattern_id}) == 2
    assert second.outcomes.usage_count == 0


async def test_an_id_of_the_callers_own_means_no_dedupe(lot):
    first = await saved(lot)
    answer = await lot.patterns.SavePattern(pattern={"task": "sort a list"}, pattern_id="mine")
    assert answer.created
    assert answer.pattern.pattern_id == "mine" != first.pattern_id
    failed = await failure(
        lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="other", dedupe=PB.DEDUPE_EXACT)
    )
    assert (failed.code, failed.fields) == ("INVALID_ARGUMENT", {"dedupe": "dedupe.pattern_id"})


async def test_an_id_in_use_is_answered_for_the_same_content_and_refused_for_other(lot):
    await saved(lot, "one", pattern_id="p")
    again = await lot.patterns.SavePattern(pattern={"task": "one"}, pattern_id="p")
    assert not again.created
    assert again.pattern.outcomes.usage_count == 0
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "two"}, pattern_id="p"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "PATTERN_ID_IN_USE")
    assert failed.metadata == {"namespace": lot.namespace, "id": "p"}
    assert failed.details["ResourceInfo"].resource_name == "p"
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.task == "one"


async def test_a_request_id_makes_a_repeat_safe(lot):
    first = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
    again = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
    assert again == first
    assert again.pattern.outcomes.usage_count == 0
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "u"}, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    assert failed.metadata == {"request_id": "r", "method": "SavePattern"}
    assert await listed(lot) == [first.pattern.pattern_id]


async def test_a_repeat_that_counted_counts_once_however_often_it_is_retried(lot):
    await saved(lot, "t")
    for _ in range(3):
        answer = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
        assert not answer.created
        assert answer.pattern.outcomes.usage_count == 1


async def test_a_retry_does_not_bring_back_what_was_deleted(lot):
    pattern = await saved(lot, "t", request_id="r")
    await lot.patterns.DeletePattern(pattern_id=pattern.pattern_id)
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r"))
    assert failed.reason == "PATTERN_NOT_FOUND"
    assert "deleted" in failed.message
    assert await listed(lot) == []
    assert (await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r2")).created


async def test_many_callers_saving_one_content_make_one_pattern(lot):
    answers = await asyncio.gather(
        *(lot.patterns.SavePattern(pattern={"task": "same"}) for _ in range(20))
    )
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.pattern.pattern_id for answer in answers}) == 1
    assert len(await listed(lot)) == 1
    pattern = (await lot.patterns.ListPatterns()).patterns[0]
    assert pattern.outcomes.usage_count == 19


async def test_a_kind_of_code_belongs_to_code(lot):
    failed = await failure(
        lot.patterns.SavePattern(pattern={"task": "t", "code_kind": P.CODE_KIND_CLASS})
    )
    assert failed.fields == {"pattern.code_kind": "code_kind.kind"}


async def test_a_long_text_is_stored_whole_and_its_unread_tail_is_told(lot):
    task = "word " * 3000
    answer = await lot.patterns.SavePattern(pattern={"task": task})
    assert answer.pattern.task == task
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED
    assert notice.field == "pattern.task"
    found = await lot.patterns.RecallPatterns(query="word " * 3000)
    assert [n.code for n in found.notices] == [outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED]
    short = await lot.patterns.SavePattern(pattern={"task": "short"})
    assert not short.notices


# --- expiry -----------------------------------------------------------------------------------


async def test_a_time_to_live_becomes_a_time_of_expiry(lot):
    pattern = await saved(lot, ttl=timedelta(hours=1))
    assert pattern.WhichOneof("expiration") == "expire_time"
    seconds = pattern.expire_time.ToMicroseconds() - pattern.create_time.ToMicroseconds()
    assert seconds == 3600 * SECOND


async def test_a_time_of_expiry_that_has_passed_is_refused(lot):
    for field, value in (("expire_time", datetime(2001, 1, 1, tzinfo=UTC)), ("ttl", timedelta(0))):
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "t", field: value}))
        assert failed.code == "INVALID_ARGUMENT"
        assert set(failed.fields) == {f"pattern.{field}"}


async def test_what_expired_is_absent_everywhere_and_its_id_and_content_are_free(lot):
    clock = lot.clock
    pattern = await saved(lot, "t", pattern_id="p", ttl=timedelta(seconds=10))
    other = await saved(lot, "u", ttl=timedelta(seconds=10))
    clock.advance(9)
    assert len(await listed(lot)) == 2
    clock.advance(1)
    assert await listed(lot) == []
    assert await recalled(lot, "t") == []
    assert (await lot.patterns.GetPatternStats()).total_patterns == 0
    for call in (
        lot.patterns.GetPattern(pattern_id="p"),
        lot.patterns.UpdatePattern(pattern_id="p", pattern={"title": "x"}),
        lot.patterns.DeletePattern(pattern_id="p"),
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS),
    ):
        assert (await failure(call)).reason == "PATTERN_NOT_FOUND"
    again = await lot.patterns.SavePattern(pattern={"task": "new"}, pattern_id="p")
    assert (again.created, again.pattern.create_time) != (True, pattern.create_time)
    anew = await lot.patterns.SavePattern(pattern={"task": "u"})
    assert anew.created
    assert anew.pattern.create_time != other.create_time


# --- batches ----------------------------------------------------------------------------------


async def test_items_of_a_batch_succeed_and_fail_by_themselves(lot):
    await saved(lot, "taken", pattern_id="p")
    answer = await lot.patterns.BatchSavePatterns(
        items=[
            {"pattern": {"task": "one"}, "initial_success_rate": 0.5},
            {"pattern": {"task": "other"}, "pattern_id": "p"},
            {"pattern": {"task": "ONE"}},
            {"pattern": {"task": "t"}, "dedupe": PB.DEDUPE_SEMANTIC},
            {"pattern": {"task": "t", "pattern_id": "x"}, "pattern_id": "y"},
            {"pattern": {"task": "long " * 3000}, "request_id": "r"},
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
    assert reasons == ["PATTERN_ID_IN_USE", "NOT_IMPLEMENTED", "REQUEST_INVALID"]
    assert [item.error.code for item in (taken, semantic, beside)] == [6, 12, 3]
    assert all(item.error.message for item in (taken, semantic, beside))


def _reason(status: Any) -> str:
    from google.rpc import error_details_pb2

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
        "items[1].pattern": "pattern.task.required",
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


# --- reading, editing, deleting ---------------------------------------------------------------


async def test_an_unknown_pattern_is_named_in_its_namespace(lot):
    for call in (
        lot.patterns.GetPattern(pattern_id="p"),
        lot.patterns.UpdatePattern(pattern_id="p", pattern={"title": "x"}),
        lot.patterns.DeletePattern(pattern_id="p"),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "PATTERN_NOT_FOUND")
        assert failed.metadata == {"namespace": lot.namespace, "id": "p"}
        resource = failed.details["ResourceInfo"]
        assert (resource.resource_type, resource.resource_name) == ("lot.v1.Pattern", "p")


async def test_an_edit_sets_what_the_mask_names_and_nothing_else(lot):
    before = await saved(lot, "t", tags=["a"], labels={"k": "v"}, title="old", pattern_id="p")
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p",
        pattern={"title": "new", "task": "ignored", "labels": {"x": "y"}},
        update_mask={"paths": ["title", "tags"]},
    )
    after = answer.pattern
    assert (after.title, after.task, list(after.tags), dict(after.labels)) == (
        "new",
        "t",
        [],
        {"k": "v"},
    )
    assert after.etag != before.etag
    assert after.create_time == before.create_time
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern == after


async def test_without_a_mask_an_edit_sets_the_fields_that_are_given(lot):
    await saved(lot, "t", tags=["a"], title="old", pattern_id="p", confidence=0.9)
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p",
        pattern={
            "title": "new",
            "pattern_id": "p",
            "etag": "x",
            "namespace": "elsewhere",
            "outcomes": {"usage_count": 7},
        },
    )
    after = answer.pattern
    assert (after.title, list(after.tags), after.confidence) == ("new", ["a"], 0.9)
    assert after.outcomes.usage_count == 0
    assert after.namespace == lot.namespace


async def test_a_mask_of_all_fields_takes_the_pattern_as_it_is_given(lot):
    before = await lot.patterns.SavePattern(pattern=whole_pattern(), pattern_id="p")
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"task": "bare"}, update_mask={"paths": ["*"]}
    )
    bare = await saved(lot, "bare", dedupe=PB.DEDUPE_NONE)
    assert output_only(answer.pattern, *GIVEN_BY_SERVER) == output_only(bare, *GIVEN_BY_SERVER)
    assert answer.pattern.outcomes == before.pattern.outcomes


async def test_an_edit_moves_what_a_pattern_is_found_by(lot):
    await saved(lot, "bake sourdough bread", pattern_id="p")
    await saved(lot, "repair a bicycle tyre", pattern_id="q")
    await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"task": "sail around the cape", "language": "Golang"}
    )
    found = await lot.patterns.RecallPatterns(query="sail around the cape")
    assert found.hits[0].pattern.pattern_id == "p"
    assert found.hits[0].similarity > 0.8
    assert await listed(lot, filter={"languages": ["go"]}) == ["p"]


async def test_an_edited_content_is_claimed_anew(lot):
    pattern = await saved(lot, "old")
    await lot.patterns.UpdatePattern(pattern_id=pattern.pattern_id, pattern={"task": "new"})
    again = await lot.patterns.SavePattern(pattern={"task": "new"})
    assert (again.created, again.pattern.pattern_id) == (False, pattern.pattern_id)
    assert (await lot.patterns.SavePattern(pattern={"task": "old"})).created


@pytest.mark.parametrize("path", [*GIVEN_BY_SERVER, "nope", "actions.tool", "outcomes.usage_count"])
async def test_a_mask_names_editable_fields_only(lot, path):
    await saved(lot, pattern_id="p")
    failed = await failure(
        lot.patterns.UpdatePattern(
            pattern_id="p", pattern={"title": "x"}, update_mask={"paths": ["title", path, "no-2"]}
        )
    )
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    violations = failed.details["BadRequest"].field_violations
    assert [v.field for v in violations] == ["update_mask", "update_mask"]
    assert repr(path) in violations[0].description
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.title == ""


async def test_a_mask_cannot_take_the_task_away(lot):
    await saved(lot, pattern_id="p")
    failed = await failure(
        lot.patterns.UpdatePattern(
            pattern_id="p", pattern={"title": "x"}, update_mask={"paths": ["task"]}
        )
    )
    assert set(failed.fields) == {"pattern.task"}


@pytest.mark.parametrize("path", ["expiration", "expire_time", "ttl", "*"])
async def test_an_expiry_is_set_and_cleared_by_the_mask(lot, path):
    await saved(lot, "t", pattern_id="p")
    mask = {"paths": [path]}
    set_ = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"task": "t", "ttl": timedelta(hours=1)}, update_mask=mask
    )
    assert set_.pattern.HasField("expire_time")
    cleared = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"task": "t"}, update_mask=mask
    )
    assert cleared.pattern.WhichOneof("expiration") is None


async def test_an_edit_with_a_stale_etag_is_refused_and_says_both(lot):
    first = await saved(lot, pattern_id="p")
    second = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"title": "one"}, etag=first.etag
    )
    for call in (
        lot.patterns.UpdatePattern(pattern_id="p", pattern={"title": "two"}, etag=first.etag),
        lot.patterns.DeletePattern(pattern_id="p", etag=first.etag),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
        assert failed.metadata == {
            "id": "p",
            "given": first.etag,
            "current": second.pattern.etag,
        }
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.title == "one"


async def test_an_outcome_does_not_make_an_etag_stale_and_an_edit_keeps_the_counters(lot):
    pattern = await saved(lot, pattern_id="p")
    await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=FAILURE)
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"task": "other"}, etag=pattern.etag
    )
    assert answer.pattern.outcomes.failure_count == 1


async def test_edits_and_outcomes_at_once_lose_neither(lot):
    await saved(lot, pattern_id="p")
    outcomes = [lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS) for _ in range(15)]
    edits = [
        lot.patterns.UpdatePattern(pattern_id="p", pattern={"title": f"t{n}"}) for n in range(5)
    ]
    await asyncio.gather(*outcomes, *edits)
    pattern = (await lot.patterns.GetPattern(pattern_id="p")).pattern
    assert pattern.outcomes.usage_count == 15
    assert pattern.title.startswith("t")


async def test_a_deleted_pattern_is_gone_with_its_outcomes_and_its_claim(lot):
    pattern = await saved(lot, "t", pattern_id="p")
    await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS)
    assert (await lot.patterns.DeletePattern(pattern_id="p", etag=pattern.etag)).deleted
    assert (await failure(lot.patterns.GetPattern(pattern_id="p"))).code == "NOT_FOUND"
    assert await listed(lot) == await recalled(lot, "t") == []
    again = await lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p")
    assert again.created
    assert again.pattern.outcomes.usage_count == 0


async def test_deleting_what_is_missing_may_be_allowed(lot):
    assert not (await lot.patterns.DeletePattern(pattern_id="p", allow_missing=True)).deleted
    await saved(lot, pattern_id="p")
    assert (await lot.patterns.DeletePattern(pattern_id="p", allow_missing=True)).deleted


# --- lists ------------------------------------------------------------------------------------


async def test_a_list_is_newest_first_and_its_pages_make_it_whole(lot):
    ids = [(await saved(lot, f"task {n}")).pattern_id for n in range(25)]
    newest = list(reversed(ids))
    assert [p.pattern_id for p in (await lot.patterns.ListPatterns()).patterns] == newest[:10]
    pages, token = [], ""
    while True:
        page = await lot.patterns.ListPatterns(page_size=7, page_token=token)
        pages.append([p.pattern_id for p in page.patterns])
        token = page.next_page_token
        if len(pages) == 1:
            await saved(lot, "created meanwhile")
        if not token:
            break
    assert [len(page) for page in pages] == [7, 7, 7, 4]
    assert [each for page in pages for each in page] == newest


async def test_a_page_that_ends_the_list_has_no_token(lot):
    for n in range(4):
        await saved(lot, f"task {n}")
    page = await lot.patterns.ListPatterns(page_size=4)
    assert (len(page.patterns), page.next_page_token) == (4, "")


# --- recall -----------------------------------------------------------------------------------


async def test_the_nearest_comes_first_and_five_are_the_default(lot):
    for n in range(8):
        await saved(lot, f"tend garden bed number {n}")
    await saved(lot, "deploy the payment service to kubernetes", pattern_id="near")
    answer = await lot.patterns.RecallPatterns(query="deploy the payment service to kubernetes")
    assert len(answer.hits) == 5
    best = answer.hits[0]
    assert best.pattern.pattern_id == "near"
    assert best.similarity > 0.8
    similarities = [hit.similarity for hit in answer.hits]
    assert similarities == sorted(similarities, reverse=True)
    assert all(0 <= hit.similarity <= 1.000001 for hit in answer.hits)
    assert not any(hit.score_parts for hit in answer.hits)
    assert not answer.HasField("explanation")


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_as_many_hits_are_given_as_asked_for(lot, limit):
    for n in range(4):
        await saved(lot, f"task {n}")
    answer = await lot.patterns.RecallPatterns(query="task", limit=limit)
    assert len(answer.hits) == min(limit, 4)


async def test_every_hit_is_as_similar_as_asked_for(lot):
    await saved(lot, "write a parser for dates", pattern_id="near")
    await saved(lot, "feed the cat at noon", pattern_id="far")
    query = "write a parser for dates"
    assert set(await recalled(lot, query)) == {"near", "far"}
    assert await recalled(lot, query, min_similarity=0.85) == ["near"]
    assert await recalled(lot, "unheard-of", min_similarity=1.0) == []


async def test_an_explained_answer_says_how_scores_came_about(lot):
    await saved(lot, "write a parser", language="go", pattern_id="p")
    await saved(lot, "feed the cat", language="py")
    await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS)
    answer = await lot.patterns.RecallPatterns(
        query="write a parser", explain=True, filter={"languages": ["go"]}
    )
    [hit] = answer.hits
    total = math.fsum(part.value * part.weight for part in hit.score_parts)
    assert hit.score == pytest.approx(total)
    assert {part.name for part in hit.score_parts} == {"similarity", "learned"}
    told = answer.explanation
    assert told.ranking == outcome_pb2.RANKING_BALANCED
    assert (told.pool_size, told.matching_count, told.namespace_count) == (1, 1, 2)
    assert told.gate > 0
    assert told.learned_weight > 0


async def test_what_was_learned_orders_near_ties_unless_similarity_alone_is_asked_for(lot):
    for name in ("a", "b"):
        await saved(lot, "rename a column", pattern_id=name)
    query = "rename a column"
    first, second = await recalled(lot, query)  # equal, so in an order of no meaning
    for _ in range(3):
        await lot.patterns.RecordOutcome(pattern_ids=[first], outcome=FAILURE)
        await lot.patterns.RecordOutcome(pattern_ids=[second], outcome=SUCCESS)
    assert await recalled(lot, query) == [second, first]
    assert await recalled(lot, query, ranking=outcome_pb2.RANKING_BALANCED) == [second, first]
    alone = await lot.patterns.RecallPatterns(query=query, ranking=outcome_pb2.RANKING_SIMILARITY)
    assert [hit.pattern.pattern_id for hit in alone.hits] == [first, second]
    assert [hit.score for hit in alone.hits] == [hit.similarity for hit in alone.hits]


async def test_a_recall_of_nothing_is_no_error(lot):
    answer = await lot.patterns.RecallPatterns(query="anything")
    assert not answer.hits
    assert answer.retrieval_id


async def test_a_query_of_white_space_or_any_script_is_answered(lot):
    await saved(lot, "数据库迁移", pattern_id="p")
    for query in (" ", "数据库迁移", "🙂", "\u202e\n\t", "x" * 65536):
        assert await recalled(lot, query) == ["p"]


# --- filters ----------------------------------------------------------------------------------

FILTERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # filter, fields of a pattern that it lets through, fields of one that it does not
    ({"languages": ["JS", "rust"]}, {"language": "javascript"}, {"language": "go"}),
    ({"languages": ["c++"]}, {"language": "C++"}, {"language": "c"}),
    ({"kinds": [P.PATTERN_KIND_CODE]}, {"kind": P.PATTERN_KIND_CODE}, {}),
    ({"kinds": [P.PATTERN_KIND_TASK]}, {}, {"kind": P.PATTERN_KIND_LEARNED}),
    (
        {"code_kinds": [P.CODE_KIND_ASYNC]},
        {"kind": P.PATTERN_KIND_CODE, "code_kind": P.CODE_KIND_ASYNC},
        {"kind": P.PATTERN_KIND_CODE, "code_kind": P.CODE_KIND_CLASS},
    ),
    ({"pattern_types": [P.PATTERN_TYPE_FAILURE]}, {"pattern_type": P.PATTERN_TYPE_FAILURE}, {}),
    ({"task_types": ["a.b", "x"]}, {"task_type": "a.b"}, {"task_type": "a"}),
    ({"categories": ["backend"]}, {"category": "backend"}, {"category": "Backend"}),
    ({"tags_any": ["x", "y"]}, {"tags": ["z", "y"]}, {"tags": ["z"]}),
    ({"tags_all": ["x", "y"]}, {"tags": ["x", "y", "z"]}, {"tags": ["x"]}),
    ({"labels": {"team.x/y": "a.b"}}, {"labels": {"team.x/y": "a.b", "k": "v"}}, {}),
    ({"labels": {"k": "v"}}, {"labels": {"k": "v"}}, {"labels": {"k": "w", "v": "k"}}),
    ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}),
    ({"labels": {"k": ""}}, {"labels": {"k": ""}}, {"labels": {"k": "v"}}),
    ({"labels": {"k": "a=b"}}, {"labels": {"k": "a=b"}}, {"labels": {"k": "a"}}),
    (
        {"complexities": [outcome_pb2.COMPLEXITY_LOW]},
        {"complexity": outcome_pb2.COMPLEXITY_LOW},
        {"complexity": outcome_pb2.COMPLEXITY_HIGH},
    ),
    ({"tools": ["curl", "jq"]}, {"tools": ["jq"]}, {"tools": ["sed"]}),
    ({"approaches": ["parallel"]}, {"approach": "parallel"}, {"approach": "standard"}),
    ({"pinned": True}, {"pinned": True}, {}),
    ({"pinned": False}, {}, {"pinned": True}),
    ({"min_success_rate": 0.7}, {"initial_success_rate": 0.7}, {"initial_success_rate": 0.69}),
    ({"min_usage_count": 1}, {"used": 1}, {}),
    ({"min_reliability": 0.2}, {"used": 1}, {}),
]


@pytest.mark.parametrize(("asked", "inside", "outside"), FILTERS)
async def test_each_filter_lets_through_what_it_should_and_nothing_else(
    lot, asked, inside, outside
):
    for name, fields in (("in", dict(inside)), ("out", dict(outside))):
        used = fields.pop("used", 0)
        await saved(lot, "a task of this test", pattern_id=name, **fields)
        for _ in range(used):
            await lot.patterns.RecordOutcome(pattern_ids=[name], outcome=SUCCESS)
    assert await listed(lot, filter=asked) == ["in"]
    assert await recalled(lot, "a task of this test", filter=asked) == ["in"]
    assert (await lot.patterns.GetPatternStats(filter=asked)).total_patterns == 1
    assert len(await listed(lot)) == 2


async def test_filters_by_time_of_creation_leave_their_bounds_out(lot):
    first = await saved(lot, "one", pattern_id="1")
    lot.clock.advance(1)
    second = await saved(lot, "two", pattern_id="2")
    lot.clock.advance(1)
    third = await saved(lot, "three", pattern_id="3")
    for asked, expected in (
        ({"created_after": first.create_time}, ["3", "2"]),
        ({"created_before": third.create_time}, ["2", "1"]),
        ({"created_after": first.create_time, "created_before": third.create_time}, ["2"]),
        ({"created_after": second.create_time, "created_before": second.create_time}, []),
    ):
        assert await listed(lot, filter=asked) == expected


def test_every_field_of_the_filter_is_in_a_test_above():
    tried = {name for asked, _, _ in FILTERS for name in asked}
    tried |= {"created_after", "created_before"}
    assert tried == set(P.PatternFilter.DESCRIPTOR.fields_by_name)


async def test_filters_together_must_all_hold(lot):
    await saved(lot, "one", pattern_id="both", language="go", tags=["x"])
    await saved(lot, "two", pattern_id="one", language="go")
    assert await listed(lot, filter={"languages": ["go"], "tags_any": ["x"]}) == ["both"]


# --- outcomes ---------------------------------------------------------------------------------


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
    for asked in ({"retrieval_id": recall.retrieval_id}, {"query": "sort"}, {}):
        await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS, **asked)
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.outcomes.usage_count == 3


async def test_an_unknown_recall_needs_the_query_as_well(lot):
    await saved(lot, pattern_id="p")
    failed = await failure(
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS, retrieval_id="r-nope")
    )
    assert (failed.code, failed.reason) == ("NOT_FOUND", "RETRIEVAL_UNKNOWN")
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
    await lot.own_services.retrievals.flush()  # as housekeeping does each second
    clock.advance(7 * 24 * 3600 - 1)
    await lot.patterns.RecordOutcome(**outcome)
    clock.advance(1)
    failed = await failure(lot.patterns.RecordOutcome(**outcome))
    assert failed.reason == "RETRIEVAL_UNKNOWN"


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
        ({"pattern_ids": []}, "pattern_ids"),
        ({"pattern_ids": ["p", "p"]}, "pattern_ids"),
        ({"pattern_ids": [f"p{n}" for n in range(101)]}, "pattern_ids"),
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
    assert told.total_patterns == 3
    assert told.max_success_rate == 1.0
    rate = 1 - 0.5 * 0.7 * 0.7
    assert told.average_success_rate == pytest.approx((rate + 2) / 3, abs=0.001)
    assert told.total_usage_count == 3
    assert told.most_used_pattern_id == "a"
    assert dict(told.by_language) == {"python": 2, "go": 1}
    assert dict(told.by_category) == {"x": 2}
    assert dict(told.by_kind) == {"TASK": 2, "CODE": 1}
    only = await lot.patterns.GetPatternStats(filter={"languages": ["go"]})
    assert (only.total_patterns, only.total_usage_count, only.most_used_pattern_id) == (1, 0, "")


async def test_stats_of_nothing_have_no_rates(lot):
    told = await lot.patterns.GetPatternStats()
    assert told == PB.GetPatternStatsResponse()
    assert not told.HasField("average_success_rate")


# --- namespaces -------------------------------------------------------------------------------


async def test_another_namespace_sees_and_changes_nothing(lot):
    await saved(lot, "t", pattern_id="p")
    recall = await lot.patterns.RecallPatterns(query="t")
    other = lot.on(f"{lot.namespace}-other")
    assert await listed(other) == []
    assert await recalled(other, "t") == []
    assert (await other.patterns.GetPatternStats()).total_patterns == 0
    for call in (
        other.patterns.GetPattern(pattern_id="p"),
        other.patterns.UpdatePattern(pattern_id="p", pattern={"title": "x"}),
        other.patterns.DeletePattern(pattern_id="p"),
        other.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS),
    ):
        failed = await failure(call)
        assert failed.reason == "PATTERN_NOT_FOUND"
        assert failed.metadata["namespace"] == other.namespace
    mine = await saved(other, "u", pattern_id="p")
    failed = await failure(
        other.patterns.RecordOutcome(
            pattern_ids=["p"], outcome=SUCCESS, retrieval_id=recall.retrieval_id
        )
    )
    assert failed.reason == "RETRIEVAL_UNKNOWN"
    assert mine.task == "u"
    for service in (lot, other):  # neither contents nor request ids are shared
        answer = await service.patterns.SavePattern(pattern={"task": "same"}, request_id="r")
        assert answer.created
    untouched = (await lot.patterns.GetPattern(pattern_id="p")).pattern
    assert (untouched.task, untouched.title, untouched.outcomes.usage_count) == ("t", "", 0)


async def test_no_namespace_is_the_default_one(lot):
    pattern = await saved(lot, lot.namespace, namespace="")
    assert pattern.namespace == "default"
    same = await lot.patterns.GetPattern(pattern_id=pattern.pattern_id, namespace="default")
    assert same.pattern == pattern
    await lot.patterns.DeletePattern(pattern_id=pattern.pattern_id, namespace="")
