"""What a recall may be ordered by: SIMILARITY goes by the similarity that hits show."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.service import SERVICES
from tests.server.wire import failure

WORDS = re.findall(r"\w+", "sort a list of users by size retry failed request open file read json")
QUERIES = (
    "retry the failed request",
    "sort users by size",
    "parse json",
    "open the file of the list, then read a date of the request",
)
BALANCED, RELEVANCE, SIMILARITY = (
    outcome_pb2.RANKING_BALANCED,
    outcome_pb2.RANKING_RELEVANCE,
    outcome_pb2.RANKING_SIMILARITY,
)
RECALLS = (
    ("patterns", "RecallPatterns"),
    ("episodes", "RecallEpisodes"),
    ("memories", "SearchMemories"),
)
RULES = {"RecallPatterns": "recall_patterns", "SearchMemories": "search_memories"}


def of(lot: Any, recall: tuple[str, str]) -> Any:
    return getattr(getattr(lot, recall[0]), recall[1])


def test_these_are_all_that_take_a_ranking():
    ranked = [
        method.name
        for service in SERVICES.values()
        for method in service.methods
        if "ranking" in method.input_type.fields_by_name
    ]
    assert sorted(ranked) == sorted(name for _, name in RECALLS)


@pytest.fixture
async def filled(lot: Any) -> Any:
    """Forty of each kind, of few words, so that both ways of comparing find and disagree."""
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=rng.choice([3, 6, 12, 40]))) for _ in range(40)]
    for number, words in enumerate(texts):
        text = f"{words} {number}"
        code = f"{rng.choice(WORDS)}_{rng.choice(WORDS)}()" if number % 3 else ""
        await lot.patterns.SavePattern(pattern={"task": text, "code": code})
        await lot.episodes.RecordEpisode(episode={"task": text, "status": 2})
        await lot.memories.CreateMemory(
            memory={"content": f"{text}. " * (1 + 40 * (number % 4 == 0)), "importance": 0.9}
        )
    return lot


@pytest.mark.parametrize("recall", RECALLS, ids=lambda recall: recall[1])
async def test_with_similarity_the_shown_similarities_never_rise(filled, recall):
    rises = False
    for query in QUERIES:
        for limit in (1, 7, 40):
            named = {"query": query, "limit": limit, "explain": True}
            hits = (await of(filled, recall)(ranking=SIMILARITY, **named)).hits
            shown = [hit.similarity for hit in hits]
            assert len(hits) == limit
            assert shown == sorted(shown, reverse=True)
            for hit in hits:
                assert hit.score == hit.similarity
                assert [(part.name, part.weight) for part in hit.score_parts] == [("similarity", 1)]
            hits = (await of(filled, recall)(ranking=RELEVANCE, **named)).hits
            by_relevance = [hit.similarity for hit in hits]
            rises |= by_relevance != sorted(by_relevance, reverse=True)
    assert rises


@pytest.mark.parametrize("recall", RECALLS, ids=lambda recall: recall[1])
async def test_balanced_is_what_is_not_given(filled, recall):
    for query in QUERIES:
        plain, given = [
            (await of(filled, recall)(query=query, ranking=ranking)).hits
            for ranking in (outcome_pb2.RANKING_UNSPECIFIED, BALANCED)
        ]
        assert list(plain) == list(given)


@pytest.mark.parametrize("recall", RECALLS, ids=lambda recall: recall[1])
async def test_an_order_that_there_is_not_is_refused(lot, recall):
    failed = await failure(of(lot, recall)(query="t", ranking=77))
    assert failed.fields == {"ranking": "enum.defined_only"}


@pytest.mark.parametrize("recall", [RECALLS[0], RECALLS[2]], ids=lambda recall: recall[1])
async def test_similarity_is_not_reranked(lot, recall):
    failed = await failure(of(lot, recall)(query="t", ranking=SIMILARITY, rerank=True))
    assert list(failed.fields.values()) == [f"{RULES[recall[1]]}.rerank.similarity"]
    assert "set ranking to RELEVANCE" in failed.message
