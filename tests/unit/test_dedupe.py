from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.pattern import (
    Action,
    CodeKind,
    PatternContent,
    PatternKind,
    dedupe_hash,
    search_text,
)
from lot_grpc.domain.search_text import SearchText

BASE = PatternContent(
    "Log in to the site",
    actions=(Action("click", {"on": "#in", "times": 2.0}), Action("wait")),
    code="x = 1",
    language="python",
)


@pytest.mark.parametrize(
    "same",
    [
        replace(BASE, task="  log IN to\tthe \n site "),
        replace(BASE, title="another", context="elsewhere", tags=("a",), metadata={"a": 1}),
        replace(
            BASE, actions=(Action("click", {"times": 2.0, "on": "#in"}, "note"), BASE.actions[1])
        ),
        replace(BASE, confidence=0.9, pinned=True, expire_time=5),
    ],
)
def test_what_only_describes_a_pattern_does_not_make_it_another(same):
    assert dedupe_hash(same) == dedupe_hash(BASE)


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, task="Log in to the sites"),
        replace(BASE, code="x = 2"),
        replace(BASE, code="X = 1"),
        replace(BASE, language="go"),
        replace(BASE, actions=tuple(reversed(BASE.actions))),
        replace(BASE, actions=BASE.actions[:1]),
        replace(BASE, actions=(Action("click", {"on": "#out", "times": 2.0}), Action("wait"))),
        replace(BASE, actions=()),
    ],
)
def test_another_way_of_doing_it_is_another_pattern(other):
    assert dedupe_hash(other) != dedupe_hash(BASE)


def test_a_pattern_is_found_by_title_task_and_context_and_its_code_apart():
    assert search_text(replace(BASE, title="T", context="C")) == SearchText(
        "T\nLog in to the site\nC", "x = 1"
    )
    assert search_text(replace(BASE, code="")) == SearchText("Log in to the site")


def test_a_pattern_needs_a_task():
    with pytest.raises(RequestInvalidError, match="task must not be blank"):
        PatternContent("").check()


def test_a_code_kind_is_for_code_only():
    with pytest.raises(RequestInvalidError, match="set kind to CODE or omit code_kind"):
        PatternContent("t", code_kind=CodeKind.CLASS).check()
    PatternContent("t", kind=PatternKind.CODE, code_kind=CodeKind.CLASS).check()
