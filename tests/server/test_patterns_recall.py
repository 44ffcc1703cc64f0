"""RecallPatterns on the wire: order, bounds, explanations, and every filter."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.patterns import FAILURE, SUCCESS, P, listed, recalled, saved


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
    assert {part.name for part in hit.score_parts} == {"similarity", "bm25", "learned"}
    told = answer.explanation
    assert told.ranking == outcome_pb2.RANKING_BALANCED
    assert (told.candidate_count, told.matching_count, told.namespace_count) == (1, 1, 2)
    assert told.reorder_margin > 0
    assert told.learned_weight > 0


async def test_what_was_learned_orders_near_ties_unless_similarity_alone_is_asked_for(lot):
    for name in ("a", "b"):
        await saved(lot, "rename a column", pattern_id=name)
    query = "rename a column"
    first, second = await recalled(lot, query)  # equal, so in an order of no meaning
    for _ in range(3):
        await lot.patterns.RecordOutcome(pattern_ids=[first], outcome=FAILURE, query=query)
        await lot.patterns.RecordOutcome(pattern_ids=[second], outcome=SUCCESS, query=query)
    assert await recalled(lot, query) == [second, first]
    assert await recalled(lot, query, ranking=outcome_pb2.RANKING_BALANCED) == [second, first]
    alone = await lot.patterns.RecallPatterns(query=query, ranking=outcome_pb2.RANKING_SIMILARITY)
    assert [hit.pattern.pattern_id for hit in alone.hits] == [first, second]
    assert [hit.score for hit in alone.hits] == pytest.approx(
        [hit.similarity for hit in alone.hits]
    )


async def test_a_recall_of_nothing_is_no_error(lot):
    answer = await lot.patterns.RecallPatterns(query="anything")
    assert not answer.hits
    assert answer.retrieval_id


async def test_a_query_of_any_script_is_answered(lot):
    await saved(lot, "数据库迁移", pattern_id="p")
    for query in ("数据库迁移", "🙂", "x" * 65536):
        assert await recalled(lot, query) == ["p"]


async def test_a_query_without_a_word_finds_nothing_and_says_so(lot):
    await saved(lot, "数据库迁移", pattern_id="p")
    for query in (" ", "\u202e\n\t", "?!"):
        answer = await lot.patterns.RecallPatterns(query=query)
        assert not answer.hits
        assert answer.retrieval_id
        [notice] = answer.notices
        assert (notice.code, notice.field) == (
            outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE,
            "query",
        )


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
    ({"superseded": True}, {}, {"supersedes": "in"}),
    ({"origins": [3]}, {"origin": {"name": "planner"}}, {"origin": {"kind": 5}}),
]


@pytest.mark.parametrize(("requested", "inside", "outside"), FILTERS)
async def test_each_filter_lets_through_what_it_should_and_nothing_else(
    lot, requested, inside, outside
):
    for name, fields in (("in", dict(inside)), ("out", dict(outside))):
        used = fields.pop("used", 0)
        await saved(lot, "a task of this test", pattern_id=name, **fields)
        for _ in range(used):
            await lot.patterns.RecordOutcome(pattern_ids=[name], outcome=SUCCESS)
    assert await listed(lot, filter=requested) == ["in"]
    assert await recalled(lot, "a task of this test", filter=requested) == ["in"]
    assert (await lot.patterns.GetPatternStats(filter=requested)).total_count == 1
    assert len(await listed(lot)) == 2


async def test_filters_by_time_of_creation_leave_their_bounds_out(lot):
    first = await saved(lot, "one", pattern_id="1")
    lot.clock.advance(1)
    second = await saved(lot, "two", pattern_id="2")
    lot.clock.advance(1)
    third = await saved(lot, "three", pattern_id="3")
    for requested, expected in (
        ({"created_after": first.create_time}, ["3", "2"]),
        ({"created_before": third.create_time}, ["2", "1"]),
        ({"created_after": first.create_time, "created_before": third.create_time}, ["2"]),
        ({"created_after": second.create_time, "created_before": second.create_time}, []),
    ):
        assert await listed(lot, filter=requested) == expected


def test_every_field_of_the_filter_is_in_a_test_above():
    tried = {name for requested, _, _ in FILTERS for name in requested}
    tried |= {"created_after", "created_before", "reviews"}  # the last: test_admin_reviews
    assert tried == set(P.PatternFilter.DESCRIPTOR.fields_by_name)


async def test_filters_together_must_all_hold(lot):
    await saved(lot, "one", pattern_id="both", language="go", tags=["x"])
    await saved(lot, "two", pattern_id="one", language="go")
    assert await listed(lot, filter={"languages": ["go"], "tags_any": ["x"]}) == ["both"]
