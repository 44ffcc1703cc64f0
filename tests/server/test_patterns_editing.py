"""PatternService on the wire: reading, editing, deleting and listing patterns."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.server.patterns import (
    FAILURE,
    GIVEN_BY_SERVER,
    PB,
    SUCCESS,
    listed,
    recalled,
    saved,
    whole_pattern,
)
from tests.server.service import output_only
from tests.server.wire import failure

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
