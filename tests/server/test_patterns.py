"""PatternService on the wire: saving, reading, editing, deleting, listing patterns."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2, pattern_service_pb2
from tests.contract.clock import SECOND
from tests.server.service import Lot, output_only
from tests.server.wire import failure

GIVEN_BY_SERVER = (
    "pattern_id", "outcomes", "namespace", "etag", "create_time", "update_time", "feedback",
    "superseded_by",
)  # fmt: skip
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


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.patterns.ListPatterns(page_size=1000, **requested)
    return [pattern.pattern_id for pattern in answer.patterns]


async def recalled(lot: Lot, query: str, **requested: Any) -> list[str]:
    answer = await lot.patterns.RecallPatterns(query=query, limit=100, **requested)
    return [hit.pattern.pattern_id for hit in answer.hits]


# --- saving -----------------------------------------------------------------------------------


async def test_every_field_comes_back_as_it_was_saved(lot):
    given = whole_pattern()
    unset = {f.name for f in P.Pattern.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == {*GIVEN_BY_SERVER, "ttl"}, "the test does not set every field of a pattern"
    await saved(lot, "older", pattern_id=given.supersedes)
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
        assert again.outcomes == outcome_pb2.OutcomeStats(success_rate=0.25)


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
    assert pattern.outcomes == outcome_pb2.OutcomeStats(success_rate=1.0)
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
    task = "word " * 9000
    answer = await lot.patterns.SavePattern(pattern={"task": task})
    assert answer.pattern.task == task
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED
    assert notice.field == "pattern.task"
    found = await lot.patterns.RecallPatterns(query="word " * 9000)
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
    assert (await lot.patterns.GetPatternStats()).total_count == 0
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
    await saved(lot, "older", pattern_id=whole_pattern().supersedes)
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


# --- namespaces -------------------------------------------------------------------------------


async def test_another_namespace_sees_and_changes_nothing(lot):
    await saved(lot, "t", pattern_id="p")
    recall = await lot.patterns.RecallPatterns(query="t")
    other = lot.on(f"{lot.namespace}-other")
    assert await listed(other) == []
    assert await recalled(other, "t") == []
    assert (await other.patterns.GetPatternStats()).total_count == 0
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
    assert failed.reason == "RETRIEVAL_NOT_FOUND"
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
