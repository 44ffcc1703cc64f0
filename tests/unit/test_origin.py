"""Who may be said to have written a text after an edit, and when that needs a review again."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import OriginRaisedError, OriginReservedError
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.origin import (
    AGENT,
    BY_SERVER,
    PENDING,
    Editor,
    Origin,
    OriginKind,
    Review,
    ReviewState,
    require_settable,
    review_of_new,
    rewrites,
    rewritten,
)
from lot_grpc.domain.pattern import Pattern, PatternContent
from tests.unit.converting import as_pattern

KINDS = list(OriginKind)
APPROVED = Review(ReviewState.APPROVED, "read it", 1)
REJECTED = Review(ReviewState.REJECTED, "no", 1)


def by(kind: OriginKind, name: str = "") -> MemoryContent:
    return MemoryContent("old", origin=Origin(kind, name))


def edited(stored: OriginKind, editor: Editor, *, text: bool) -> OriginKind:
    old = by(stored)
    new = replace(old, content="new") if text else replace(old, pinned=True)
    kind: OriginKind = editor.apply(old, new, "memory", "m").origin.kind
    return kind


@pytest.mark.parametrize("stored", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_an_edit_of_the_text_never_raises_trust(stored, given):
    if given is OriginKind.EXTRACTION is not stored:
        return  # refused, below
    after = edited(stored, Editor(Origin(given), named=True), text=True)
    assert after is KINDS[max(KINDS.index(stored), KINDS.index(given))]


@pytest.mark.parametrize("stored", KINDS)
def test_who_does_not_say_who_it_is_counts_as_an_agent_or_as_the_former_writer(stored):
    assert edited(stored, Editor(), text=True) is KINDS[max(KINDS.index(stored), 2)]
    written_back = Editor(Origin(stored))
    assert edited(stored, written_back, text=True) is KINDS[max(KINDS.index(stored), 2)]


@pytest.mark.parametrize("stored", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_an_edit_of_all_but_the_text_leaves_the_origin(stored, given):
    if given is OriginKind.EXTRACTION is not stored:
        return
    assert edited(stored, Editor(Origin(given), named=True), text=False) is stored


def test_of_equally_trusted_writers_the_last_one_of_the_text_counts():
    old = by(OriginKind.PERSON, "alice")
    bob = Editor(Origin(OriginKind.PERSON, "bob"))
    assert bob.apply(old, replace(old, content="new"), "memory", "m").origin.name == "bob"
    nobody = Editor().apply(by(OriginKind.AGENT, "planner"), MemoryContent("new"), "memory", "m")
    assert nobody.origin == AGENT


@pytest.mark.parametrize("stored", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_an_edit_of_the_origin_alone_can_only_lower_it(stored, given):
    if given is OriginKind.EXTRACTION is not stored:
        return
    old, editor = by(stored), Editor(Origin(given), named=True, alone=True)
    if KINDS.index(given) < KINDS.index(stored):
        with pytest.raises(OriginRaisedError):
            editor.apply(old, old, "memory", "m")
    else:
        assert editor.apply(old, old, "memory", "m").origin.kind is given


def test_an_edit_of_the_origin_alone_does_not_rename_who_it_was():
    editor = Editor(Origin(OriginKind.PERSON, "alice"), named=True, alone=True)
    old = by(OriginKind.PERSON, "mallory")
    with pytest.raises(OriginRaisedError):
        editor.apply(old, old, "memory", "m")


@pytest.mark.parametrize("stored", [kind for kind in KINDS if kind is not BY_SERVER.kind])
@pytest.mark.parametrize("alone", [False, True])
def test_only_the_server_extracts(stored, alone):
    editor, old = Editor(BY_SERVER, named=True, alone=alone), by(stored)
    with pytest.raises(OriginReservedError):
        editor.apply(old, replace(old, content="new"), "memory", "m")
    with pytest.raises(OriginReservedError):
        require_settable(BY_SERVER, "memory")


def test_what_was_extracted_may_be_written_back_with_its_origin():
    editor, old = Editor(BY_SERVER), by(BY_SERVER.kind)
    assert editor.apply(old, replace(old, content="new"), "memory", "m").origin == BY_SERVER


# --- reviews ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_record_is_to_be_reviewed_if_the_policy_names_its_origin(kind):
    assert review_of_new(Origin(kind), (OriginKind.MODEL,)) == (
        PENDING if kind is OriginKind.MODEL else None
    )
    assert review_of_new(Origin(kind), ()) is None


@pytest.mark.parametrize("review", [None, PENDING, APPROVED, REJECTED])
def test_an_edit_by_an_origin_of_the_policy_is_to_be_reviewed_and_by_another_changes_no_review(
    review,
):
    model, before = Editor(Origin(OriginKind.MODEL), named=True), AGENT
    assert model.review_after(before, review, (OriginKind.MODEL,)) == PENDING
    assert model.review_after(before, review, (OriginKind.TOOL,)) == review
    person = Editor(Origin(OriginKind.PERSON))
    assert person.review_after(Origin(OriginKind.MODEL), review, (OriginKind.MODEL,)) == review


def test_a_model_that_does_not_say_who_it_is_is_held_back_as_the_model_that_wrote_before():
    before = Origin(OriginKind.MODEL)
    for editor in (Editor(), Editor(before)):
        assert editor.review_after(before, APPROVED, (OriginKind.MODEL,)) == PENDING


WITHOUT_TEXT = {
    "tags": ("x",), "labels": {"a": "b"}, "pinned": True, "importance": 0.1, "confidence": 0.1,
    "expire_time": 9, "source_episode_ids": ("e",), "source_pattern_ids": ("p",),
    "parent_pattern_id": "p",
}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [MemoryContent("c"), PatternContent("t"), ErrorSolutionContent("e")],
    ids=lambda content: type(content).__name__,
)
def test_every_field_that_may_be_read_or_that_hides_another_record_is_text(content):
    for one in fields(content):
        if one.name == "origin":
            continue
        changed = WITHOUT_TEXT.get(one.name, object())
        new = replace(content, **{one.name: changed})
        assert rewrites(content, new) is (one.name not in WITHOUT_TEXT), one.name


def test_what_the_server_rewrites_is_its_own_and_reviewed_as_such():
    stored = as_pattern(PatternContent("t", origin=Origin(OriginKind.PERSON)))
    stored = replace(stored, review=APPROVED)
    new: Pattern = rewritten(stored, replace(stored.content, task="new"), (BY_SERVER.kind,))
    assert (new.content.origin, new.review) == (BY_SERVER, PENDING)
    tagged: Pattern = rewritten(stored, replace(stored.content, tags=("x",)), (BY_SERVER.kind,))
    assert (tagged.content.origin.kind, tagged.review) == (OriginKind.PERSON, APPROVED)
    imported = replace(stored, content=replace(stored.content, origin=Origin(OriginKind.IMPORT)))
    again: Pattern = rewritten(imported, replace(imported.content, task="new"), ())
    assert (again.content.origin.kind, again.review) == (OriginKind.IMPORT, APPROVED)
