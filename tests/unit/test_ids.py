from __future__ import annotations

import re
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.ids import (
    ResourceRef,
    content_hash,
    namespace_or_default,
    new_id,
    point_id,
    point_ids,
)
from lot_grpc.domain.pattern import Action, PatternContent
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.kernel.idempotency import IdempotencyKey
from lot_grpc.services.records.episodes import episode_point, event_point
from lot_grpc.services.records.memories import memory_point
from lot_grpc.services.records.patterns import claim_point, pattern_point
from lot_grpc.services.records.retrievals import retrieval_point

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
CONTRACT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")


def test_a_random_id_is_one_that_a_caller_could_have_chosen():
    made = new_id("p")
    assert CONTRACT.match(made)
    assert re.fullmatch(r"p-[0-9a-hjkmnp-z]{16}", made)


def test_random_ids_do_not_repeat():
    assert len({new_id("p") for _ in range(5000)}) == 5000


def test_an_empty_namespace_is_the_default_one():
    assert namespace_or_default("") == "default"
    assert namespace_or_default("team") == "team"


@given(st.lists(st.text(alphabet="ab:.", max_size=3), min_size=1, max_size=3))
def test_other_parts_lie_elsewhere(parts):
    here = point_id("ns", "resource_kind", *parts)
    assert uuid.UUID(here).version == 5
    assert here == point_id("ns", "resource_kind", *parts)
    assert here != point_id("ns", "resource_kind", *parts, "more")
    assert here != point_id("ns2", "resource_kind", *parts)
    assert here != point_id("ns", "noun2", *parts)


@given(st.tuples(TEXTS, TEXTS, TEXTS), st.lists(TEXTS, max_size=5))
def test_points_made_together_are_those_made_one_by_one(head, tails):
    assert point_ids(head, tails) == [point_id(*head, tail) for tail in tails]


PATTERN = ResourceRef("pattern", "p-1")
FACT = RecordedOutcome("default", "o-1", PATTERN, outcome=None, create_time=0)
CONTENT = PatternContent(
    "Log in  to the Site", actions=(Action("click", {"on": "#in"}, "note"),), language="python"
)


# Changing one of these loses every record that a store already holds: never edit them.
@pytest.mark.parametrize(
    ("place", "literal"),
    [
        (pattern_point("default", "p-1"), "14e1194e-8463-5b3f-8447-4754b78b7b8d"),
        (episode_point("default", "e-1"), "a7c5c7a1-389c-5bc2-b010-36b1c17acace"),
        (event_point("default", "e-1", 1), "330a4a76-afd8-5342-8bfa-3083bc627004"),
        (event_point("default", "e-1", 10_000), "72e44846-28d7-59ba-a902-81343808f4d2"),
        (memory_point("default", "m-1"), "b9e9e0b1-0f36-5f88-bc5e-8aa3b7f76185"),
        (retrieval_point("default", "r-1"), "c4ba6351-9393-55b7-a173-ac462e1d0d80"),
        (
            replace(FACT, resource=ResourceRef("error_solution", "s-1")).point,
            "17aa145e-18d7-54dc-8b31-f9ca378cda61",
        ),
        (FACT.point, "4f843389-8222-5112-bd11-0057aea188b9"),
        (claim_point("default", CONTENT), "d25dd509-b4b2-5825-8ed6-bc4ae1b3b58c"),
        (
            IdempotencyKey("default", "SavePattern", "req", "", {}).point,
            "fbe2dbd2-e8c9-57aa-b8b8-c094e90d7199",
        ),
        (
            point_id("default", "tombstone", "pattern", "p-1"),
            "18601884-b5aa-5fca-8197-ae18983ed27e",
        ),
        (point_id("_lot", "meta", "contract"), "2b67c501-b9e5-56a0-bf73-b73a73cf7e86"),
    ],
)
def test_records_lie_where_they_always_lay(place, literal):
    assert place == literal


def test_a_content_hash_is_pinned_and_does_not_depend_on_the_order_of_keys():
    assert content_hash({"a": 1, "b": ["é", None, 0.5]}) == "c2071502f94ce17ac6ba0cb25a108e4a"
    assert content_hash({"b": ["é", None, 0.5], "a": 1}) == "c2071502f94ce17ac6ba0cb25a108e4a"
    assert content_hash({"a": 1}) != content_hash({"a": "1"})
    assert content_hash({"a": True}) != content_hash({"a": 1})
