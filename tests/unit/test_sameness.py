"""Contents that went through the store count as the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.pattern import Action, PatternContent
from lot_grpc.domain.sameness import same_content

GIVEN = PatternContent(
    "t",
    actions=(Action("tool", {"x": [0.9499532041942668, None]}),),
    metadata={"n": {"deep": 1e300}},
    expire_time=5,
)


def test_the_last_bit_of_a_double_and_the_expiry_do_not_matter():
    stored = replace(
        GIVEN, actions=(Action("tool", {"x": [0.9499532041942667, None]}),), expire_time=None
    )
    assert stored != GIVEN
    assert same_content(stored, GIVEN)


@pytest.mark.parametrize(
    "other",
    [
        replace(GIVEN, task="u"),
        replace(GIVEN, metadata={"n": {"deep": 1.1e300}}),
        replace(GIVEN, metadata={"n": {"deep": True}}),
        replace(GIVEN, metadata={}),
        replace(GIVEN, actions=()),
        replace(GIVEN, tags=("x",)),
    ],
)
def test_anything_else_does(other):
    assert not same_content(GIVEN, other)


def test_memories_are_compared_alike():
    assert same_content(
        MemoryContent("x", importance=0.1 + 0.2), MemoryContent("x", importance=0.3)
    )
    assert not same_content(MemoryContent("x"), MemoryContent("y"))
