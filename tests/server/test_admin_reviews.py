"""Origins on the wire, and ReviewRecords."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    change_pb2,
    origin_pb2,
    outcome_pb2,
    pattern_service_pb2,
)
from tests.server.service import Lot
from tests.server.test_memories_watching import change_watcher
from tests.server.transfers import exported, records_of
from tests.server.wire import failure

P: Any = origin_pb2
PERSON, AGENT, EXTRACTION, MODEL = (
    P.ORIGIN_KIND_PERSON, P.ORIGIN_KIND_AGENT, P.ORIGIN_KIND_EXTRACTION, P.ORIGIN_KIND_MODEL,
)  # fmt: skip
PENDING, APPROVED, REJECTED = (
    P.REVIEW_STATE_PENDING, P.REVIEW_STATE_APPROVED, P.REVIEW_STATE_REJECTED,
)  # fmt: skip
KINDS = {"memory": 1, "pattern": 2, "error_solution": 6}
TEXT = "the port of the shop is 8080"
FIELDS = {
    "memory": {"content": TEXT},
    "pattern": {"task": TEXT},
    "error_solution": {"error_message": TEXT, "resolution": "use it"},
}
each = pytest.mark.parametrize("kind", list(KINDS))


async def store(lot: Lot, kind: str, record_id: str = "x", **fields: Any) -> Any:
    given = {kind: {**FIELDS[kind], **fields}, f"{kind}_id": record_id}
    call = {
        "memory": lot.memories.CreateMemory,
        "pattern": lot.patterns.SavePattern,
        "error_solution": lot.memories.SaveErrorSolution,
    }[kind]
    return getattr(await call(**given), kind)


async def update(lot: Lot, kind: str, *paths: str, **fields: Any) -> Any:
    given = {kind: fields, f"{kind}_id": "x", "update_mask": {"paths": paths}}
    call = {
        "memory": lot.memories.UpdateMemory,
        "pattern": lot.patterns.UpdatePattern,
        "error_solution": lot.memories.UpdateErrorSolution,
    }[kind]
    return getattr(await call(**given), kind)


async def recalled(lot: Lot, kind: str) -> list[str]:
    if kind == "memory":
        hits = (await lot.memories.SearchMemories(query=TEXT)).hits
    elif kind == "pattern":
        hits = (await lot.patterns.RecallPatterns(query=TEXT)).hits
    else:
        hits = (await lot.memories.FindErrorSolutions(error_message=TEXT)).hits
    return [getattr(getattr(hit, kind), f"{kind}_id") for hit in hits]


async def listed(lot: Lot, kind: str, **narrowed: Any) -> list[str]:
    call = {
        "memory": lot.memories.ListMemories,
        "pattern": lot.patterns.ListPatterns,
        "error_solution": lot.memories.ListErrorSolutions,
    }[kind]
    page = await call(filter=narrowed)
    field = {"memory": "memories", "pattern": "patterns", "error_solution": "error_solutions"}
    return [getattr(one, f"{kind}_id") for one in getattr(page, field[kind])]


async def holds_models_back(lot: Lot) -> None:
    await lot.admin.UpdateNamespacePolicy(policy={"review_origins": [MODEL]})


# --- origins ----------------------------------------------------------------------------------


@each
async def test_whoever_says_nothing_is_an_agent(lot, kind):
    stored = await store(lot, kind)
    assert (stored.origin.kind, stored.origin.name) == (AGENT, "")
    assert not stored.HasField("review")


@each
async def test_only_the_server_extracts(lot, kind):
    failed = await failure(store(lot, kind, origin={"kind": EXTRACTION}))
    assert failed.reason == "ORIGIN_RESERVED"
    assert failed.metadata["field"] == f"{kind}.origin.kind"
    assert "PERSON, TOOL, AGENT, MODEL or IMPORT" in failed.message
    await store(lot, kind)
    failed = await failure(update(lot, kind, "origin", origin={"kind": EXTRACTION}))
    assert failed.reason == "ORIGIN_RESERVED"


async def test_in_a_batch_only_the_item_is_refused(lot):
    items = [
        {"memory": {"content": "a", "origin": {"kind": EXTRACTION}}},
        {"memory": {"content": "b", "origin": {"kind": MODEL}}},
    ]
    refused, done = (await lot.memories.BatchCreateMemories(items=items)).results
    assert "only the server sets EXTRACTION" in refused.error.message
    assert done.response.memory.origin.kind == MODEL


@each
async def test_an_edit_of_the_origin_alone_can_only_lower_it(lot, kind):
    await store(lot, kind, origin={"kind": MODEL, "name": "m1"})
    for paths in (["origin"], ["origin.kind"], []):
        failed = await failure(update(lot, kind, *paths, origin={"kind": PERSON}))
        assert failed.reason == "ORIGIN_RAISED"
        assert "ReviewRecords" in failed.message
    lowered = await update(lot, kind, "origin", origin={"kind": P.ORIGIN_KIND_IMPORT})
    assert lowered.origin == origin_pb2.Origin(kind=P.ORIGIN_KIND_IMPORT)


@each
async def test_the_editor_is_who_the_sent_record_says_with_or_without_a_mask(lot, kind):
    stored = await store(lot, kind, origin={"kind": PERSON, "name": "alice"})
    text = {"memory": "title", "pattern": "title", "error_solution": "context"}[kind]
    same = {"kind": PERSON, "name": "alice"}
    kept = await update(lot, kind, text, "origin", origin=same, **{text: "by herself"})
    assert kept.origin == stored.origin
    tagged = await update(lot, kind, tags=["x"], origin={"kind": MODEL})
    assert tagged.origin == stored.origin
    lowered = await update(lot, kind, text, origin={"kind": MODEL}, **{text: "by a model"})
    assert lowered.origin.kind == MODEL
    await update(lot, kind, text, "origin", origin={"kind": PERSON}, **{text: "by a person"})
    await lot.admin.ClearNamespace(confirm_namespace=lot.namespace)
    await store(lot, kind, origin=same)
    written_back = await update(lot, kind, origin=same, **{text: "by whoever read it"})
    assert written_back.origin.kind == AGENT


@pytest.mark.parametrize("name", ["two\nlines", " spaced", "over\u202eride", "\x07", "x" * 129])
async def test_a_name_is_one_short_line(lot, name):
    failed = await failure(store(lot, "memory", origin={"name": name}))
    assert failed.reason == "REQUEST_INVALID"
    assert list(failed.fields) == ["memory.origin.name"]


# --- reviews ----------------------------------------------------------------------------------


@each
async def test_what_is_pending_is_recalled_once_it_is_approved(lot, kind):
    await holds_models_back(lot)
    stored = await store(lot, kind, origin={"kind": MODEL})
    assert stored.review == origin_pb2.Review(state=PENDING)
    await store(lot, kind, "agents")
    assert await recalled(lot, kind) == ["agents"]
    assert await listed(lot, kind, reviews=[PENDING]) == ["x"]
    assert set(await listed(lot, kind)) == {"x", "agents"}
    item = {"id": "x", "etag": stored.etag}
    answer = await lot.admin.ReviewRecords(
        resource_kind=KINDS[kind], items=[item], state=APPROVED, note="looked it up"
    )
    assert (answer.changed_count, answer.failed_count) == (1, 0)
    [result] = answer.results
    assert (result.id, result.changed, result.HasField("error")) == ("x", True, False)
    assert (result.review.state, result.review.note) == (APPROVED, "looked it up")
    assert result.review.review_time.seconds > 0
    assert set(await recalled(lot, kind)) == {"x", "agents"}
    again = await lot.admin.ReviewRecords(
        resource_kind=KINDS[kind], items=[item], state=APPROVED, note="looked it up"
    )
    assert (again.changed_count, again.results[0].review) == (0, result.review)


@each
async def test_a_caller_cannot_give_a_review(lot, kind):
    await holds_models_back(lot)
    review = {"state": APPROVED, "note": "mine"}
    stored = await store(lot, kind, origin={"kind": MODEL}, review=review)
    assert stored.review == origin_pb2.Review(state=PENDING)
    failed = await failure(update(lot, kind, "review", review=review))
    assert failed.reason == "REQUEST_INVALID"
    assert "output only" in failed.message
    assert (await update(lot, kind, tags=["x"], review=review)).review.state == PENDING


async def test_each_item_has_its_own_result(lot):
    stored = await store(lot, "memory")
    items = [{"id": "nobody"}, {"id": "x", "etag": "old"}, {"id": "x", "etag": stored.etag}]
    answer = await lot.admin.ReviewRecords(resource_kind=1, items=items, state=REJECTED)
    assert (answer.changed_count, answer.failed_count) == (1, 2)
    missing, edited, done = answer.results
    assert "no memory 'nobody'" in missing.error.message
    assert "was edited in the meantime" in edited.error.message
    assert not missing.HasField("review")
    assert done.review.state == REJECTED


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"resource_kind": 0}, "resource_kind"),
        ({"resource_kind": 4}, "resource_kind"),
        ({"items": []}, "items"),
        ({"items": [{"id": ""}]}, "items[0].id"),
        ({"items": [{"id": "x"}] * 501}, "items"),
        ({"state": 0}, "state"),
        ({"state": 9}, "state"),
        ({"note": "n" * 4097}, "note"),
    ],
)
async def test_what_is_wrong_with_a_review_is_said(lot, changed, field):
    good = {"resource_kind": 1, "items": [{"id": "x"}], "state": APPROVED}
    failed = await failure(lot.admin.ReviewRecords(**{**good, **changed}))
    assert failed.reason == "REQUEST_INVALID"
    assert list(failed.fields) == [field]


async def test_a_review_is_reported_as_an_update_with_the_same_etag(lot):
    await holds_models_back(lot)
    stored = await store(lot, "memory", origin={"kind": MODEL})
    async with change_watcher(lot, resource_kinds=[1]) as watcher:
        await lot.admin.ReviewRecords(resource_kind=1, items=[{"id": "x"}], state=APPROVED)
        [event] = await watcher.until(1)
    assert event.type == change_pb2.CHANGE_TYPE_UPDATED
    assert event.memory.review.state == APPROVED
    assert (event.memory.etag, event.memory.update_time) == (stored.etag, stored.update_time)


def test_notes_of_all_items_fit_into_one_answer() -> None:
    review = origin_pb2.Review(state=APPROVED, note="n" * 4096)
    result = admin_service_pb2.ReviewResult(id="x" * 128, review=review, changed=True)
    answer = admin_service_pb2.ReviewRecordsResponse(results=[result] * 500)
    assert answer.ByteSize() < 3 * 2**20


async def test_reviews_and_origins_are_exported_and_imported(lot):
    await holds_models_back(lot)
    await store(lot, "memory", origin={"kind": MODEL, "name": "m1"})
    await lot.admin.ReviewRecords(
        resource_kind=1, items=[{"id": "x"}], state=REJECTED, note="no source"
    )
    records = records_of(await exported(lot))
    [stored] = [one.memory for one in records if one.HasField("memory")]
    assert (stored.origin.name, stored.review.note) == ("m1", "no source")


@each
@pytest.mark.parametrize("state", [PENDING, REJECTED])
async def test_a_save_that_meets_what_is_held_back_is_told_what_to_do(lot: Lot, kind: str, state):
    save = {
        "memory": partial(lot.memories.CreateMemory, dedupe=pattern_service_pb2.DEDUPE_EXACT),
        "pattern": partial(lot.patterns.SavePattern, dedupe=pattern_service_pb2.DEDUPE_EXACT),
        "error_solution": lot.memories.SaveErrorSolution,
    }[kind]
    first = await save(**{kind: FIELDS[kind]})
    assert not first.notices
    record_id = getattr(getattr(first, kind), f"{kind}_id")
    item = {"resource_kind": KINDS[kind], "items": [{"id": record_id}]}
    await lot.admin.ReviewRecords(**item, state=state)
    again = await save(**{kind: FIELDS[kind]})
    assert not again.created
    [notice] = again.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_HELD_BACK
    assert notice.field == f"{kind}.review"
    assert "approve it with ReviewRecords" in notice.message
    await lot.admin.ReviewRecords(**item, state=APPROVED)
    assert not (await save(**{kind: FIELDS[kind]})).notices
    assert await recalled(lot, kind) == [record_id]
