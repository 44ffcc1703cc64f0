"""Both legs, one answer; and the cross-encoder's part in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lot_grpc.domain.errors import ModelUnavailableError, RerankerUnavailableError
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter, Ranking
from lot_grpc.domain.reranking import RERANK_WEIGHT
from lot_grpc.lexical.bm25 import MOST_QUERY_TERMS
from lot_grpc.ports import Reranker, SearchQuery
from lot_grpc.services.build import Services
from lot_grpc.services.recall.recall import Answer, Hit
from lot_grpc.services.recall.reranks import RerankBounds
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import ServiceSettings, open_runtime
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from tests.services.world import NS, World, memory, open_world, save, start


async def ask(world: World, query: str, limit: int = 5, **named: Any) -> Answer[Pattern]:
    named.setdefault("ranking", Ranking.RELEVANCE)
    question = pattern_request(RecallOptions(query, limit, **named), PatternFilter())
    return await world.services.recall.patterns.find(NS, question)


def tasks(answer: Answer[Pattern]) -> list[str]:
    return [hit.thing.content.task for hit in answer.hits]


def part(hit: Hit[Any], name: str) -> Any:
    return next((part for part in hit.parts if part.name == name), None)


# --- both legs --------------------------------------------------------------------------------


class EventRecorder:
    """A store that remembers its searches."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.searches: list[Sequence[SearchQuery]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def search(
        self, collection: str, namespace: str, queries: Any, rescore: Any = None
    ) -> Any:
        self.searches.append(queries)
        return await self._inner.search(collection, namespace, queries, rescore)


async def recorded(count: int) -> tuple[World, EventRecorder]:
    """A world of so many patterns, and its store."""
    first = await open_world()
    for number in range(count):
        await save(first, f"Sort list {number} by size", code=f"sort(list_{number})")
    store = EventRecorder(first.store)
    return World(store, first.clock, first.services).another_process(), store


async def test_code_is_found_by_an_identifier_in_it_written_otherwise(world):
    await save(world, "Read the name of the one who is signed in", code="session.getUserName()")
    for number in range(60):
        await save(world, f"Read the user of name {number}", code=f"read{number}(x)")
    assert tasks(await ask(world, "get_user_name"))[0].startswith("Read the name of the one")


async def test_a_rare_word_in_a_long_clause_is_found_by_words_alone(world):
    clause = "在将应用部署到生产环境之前先备份数据库然后再执行所有的迁移脚本并检查日志"
    await save(world, clause)
    for number in range(60):
        await save(world, f"数据 {number} 库存")  # has all but one of the pairs
    assert tasks(await ask(world, "数据库", legs=Legs.BM25))[0] == clause


async def test_the_parts_of_a_hit_are_both_legs_and_add_up(world):
    await save(world, "Log in to the site")
    await save(world, "Water the plants")
    for hit in (await ask(world, "log in to the web site")).hits:
        assert [one.name for one in hit.parts] == ["similarity", "bm25"]
        assert part(hit, "similarity").value == hit.similarity
        assert sum(one.weight for one in hit.parts) == pytest.approx(1.0)
        assert hit.score == pytest.approx(sum(one.value * one.weight for one in hit.parts))


async def test_one_leg_alone_has_one_part(world):
    await save(world, "Log in to the site")
    await save(world, "Log out of the site")
    [dense, *_] = (await ask(world, "log in", legs=Legs.DENSE)).hits
    [words, *_] = (await ask(world, "log in", legs=Legs.BM25)).hits
    assert [one.name for one in dense.parts] == ["similarity"]
    assert [one.name for one in words.parts] == ["bm25"]
    assert dense.score == dense.similarity


async def test_words_alone_find_only_who_shares_one(world):
    await save(world, "Log in to the site")
    await save(world, "Water plants")
    assert tasks(await ask(world, "site", legs=Legs.BM25)) == ["Log in to the site"]
    assert len(tasks(await ask(world, "site"))) == 2


async def test_without_a_shared_word_the_score_is_the_similarity(world):
    await save(world, "Log in to the site")
    [hit] = (await ask(world, "zyzzyva")).hits
    assert hit.score == hit.similarity
    assert [one.name for one in hit.parts] == ["similarity"]


@pytest.mark.parametrize("query", ["?!", "   ", "\n", "...", "()"])
async def test_a_query_without_a_word_finds_nothing_and_says_so(world, query):
    await save(world, "Log in to the site")
    answer = await ask(world, query)
    assert (answer.hits, answer.wordless, answer.truncated) == ([], True, False)
    assert answer.retrieval_id
    assert not (await ask(world, f"{query} site")).wordless


async def test_a_query_of_more_terms_than_are_looked_up_says_so(world):
    await save(world, "Log in to the site")
    words = [f"w{chr(97 + n % 26) * (1 + n // 26)}" for n in range(MOST_QUERY_TERMS + 1)]
    assert not (await ask(world, " ".join(words[:-1]))).truncated
    answer = await ask(world, " ".join(words))
    assert answer.truncated
    assert len(answer.hits) == 1
    assert not (await ask(world, " ".join(words), ranking=Ranking.SIMILARITY)).truncated


async def test_one_search_brings_both_legs_and_what_decides_between_words():
    world, store = await recorded(120)
    await ask(world, "sort list 3")
    [queries] = store.searches
    assert [(one.using, one.limit, one.records) for one in queries] == [
        ("text", 50, 0),
        ("code", 50, 0),
        ("bm25", 50, 1),
    ]


async def test_a_hit_that_is_deleted_meanwhile_is_left_out():
    class Forgetting(EventRecorder):
        async def get(self, *given: Any, **named: Any) -> Any:
            found = await self._inner.get(*given, **named)
            return {} if given[0] == PATTERNS else found

    first = await open_world()
    await save(first, "Log in to the site")
    world = World(Forgetting(first.store), first.clock, first.services).another_process()
    answer = await ask(world, "log in to the site")
    assert answer.hits == []
    assert (await ask(world, "log in", rerank=True)).hits == []


# --- the cross-encoder ------------------------------------------------------------------------

NEAR = ["Log in to the web shop", "Log in to the shop", "Log in to a shop of books"]
ASKED = "in books shop of log"


class CountingReranker(OverlapReranker):
    """Remembers what it was asked."""

    def __init__(self, reached: int | None = None) -> None:
        super().__init__(reached)
        self.calls: list[tuple[str, list[str], float]] = []

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        self.calls.append((query, list(texts), seconds))
        return await super().score(query, texts, seconds=seconds)


class Missing(OverlapReranker):
    """Its model is not there."""

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        raise ModelUnavailableError("no such file", path="nowhere")


class Given(OverlapReranker):
    """Scores by the text, as told."""

    def __init__(self, scores: dict[str, float]) -> None:
        super().__init__()
        self._scores = scores

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        return [self._scores[text] for text in texts]


def reranking(world: World, reranker: Reranker, bounds: RerankBounds | None = None) -> World:
    """The same store, asked with another cross-encoder."""
    settings = ServiceSettings(rerank=bounds or RerankBounds(candidates=20, seconds=2.0))
    runtime = open_runtime(
        world.store, REGISTRY, HashingEmbedder(), reranker, world.clock, settings
    )
    return World(world.store, world.clock, Services(runtime))


async def test_what_the_cross_encoder_likes_gets_the_best_relevance_and_the_rest_the_least(world):
    for task in NEAR:
        await save(world, task)
    before = await ask(world, "log in to the shop")
    likes = dict.fromkeys(NEAR, 0.05) | {tasks(before)[1]: 0.99}
    strong = reranking(world, Given(likes))
    after = await ask(strong, "log in to the shop", rerank=True)
    assert sorted(tasks(after)) == sorted(tasks(before))
    best = next(hit for hit in after.hits if hit.thing.content.task == tasks(before)[1])
    assert part(best, "rerank").value == pytest.approx(before.hits[0].score)
    others = [hit for hit in after.hits if hit is not best]
    assert {round(part(hit, "rerank").value, 6) for hit in others} == {
        round(before.hits[-1].score, 6)
    }


async def test_the_order_changes_where_candidates_are_near(world):
    near = ["Sort the long list by its size", "Sort the long list by its sizes"]
    far = "Water all of the plants"
    for task in (*near, far):
        await save(world, task)
    plain = tasks(await ask(world, "sort the long list by size"))
    assert plain[2] == far
    for first, second in (near, near[::-1]):
        asked = reranking(world, Given({first: 0.9, second: 0.1, far: 0.09}))
        answer = await ask(asked, "sort the long list by size", rerank=True)
        assert tasks(answer) == [first, second, far]


async def test_a_reranked_hit_has_a_part_for_it_and_parts_add_up(world):
    for task in NEAR:
        await save(world, task)
    for hit in (await ask(world, ASKED, rerank=True)).hits:
        assert [one.name for one in hit.parts] == ["similarity", "bm25", "rerank"]
        assert part(hit, "rerank").weight == RERANK_WEIGHT
        assert hit.score == pytest.approx(sum(one.value * one.weight for one in hit.parts))
        assert hit.similarity == part(hit, "similarity").value


async def test_nobody_is_asked_unless_it_is_wanted(world):
    reranker = CountingReranker()
    asked = reranking(world, reranker)
    for task in NEAR:
        await save(world, task)
    answer = await ask(asked, ASKED)
    assert reranker.calls == []
    assert all(part(hit, "rerank") is None for hit in answer.hits)
    await ask(asked, ASKED, rerank=True)
    assert len(reranker.calls) == 1


async def test_the_best_candidates_are_read_within_the_bounds_prose_and_code(world):
    await save(world, "Log in to the shop", context="by mail", code="logIn(user_name)")
    for number in range(30):
        await save(world, f"Log in to the shop number {number}")
    reranker = CountingReranker()
    asked = reranking(world, reranker, RerankBounds(candidates=7, seconds=0.5))
    plain = await ask(asked, "log in to the shop by mail", limit=31)
    found = await ask(asked, "log in to the shop by mail", limit=31, rerank=True)
    [(query, texts, seconds)] = reranker.calls
    assert (query, len(texts), seconds) == ("log in to the shop by mail", 7, 0.5)
    assert texts[0] == "Log in to the shop\nby mail\nlog In(user name)"
    reranked = [hit for hit in found.hits if part(hit, "rerank") is not None]
    assert len(reranked) == 7
    assert found.unreached == 0
    assert sorted(tasks(found)) == sorted(tasks(plain))
    behind = {hit.thing.pattern_id: hit.score for hit in plain.hits}
    for hit in found.hits:
        if part(hit, "rerank") is None:
            assert hit.score == behind[hit.thing.pattern_id]


@pytest.mark.parametrize(("reached", "unreached"), [(None, 0), (3, 0), (2, 1), (0, 3)])
async def test_candidates_without_time_are_told_and_keep_their_score(world, reached, unreached):
    for task in NEAR:
        await save(world, task)
    plain = {hit.thing.pattern_id: hit.score for hit in (await ask(world, ASKED)).hits}
    answer = await ask(reranking(world, OverlapReranker(reached)), ASKED, rerank=True)
    assert answer.unreached == unreached
    without = [hit for hit in answer.hits if part(hit, "rerank") is None]
    assert len(without) == unreached
    assert all(hit.score == plain[hit.thing.pattern_id] for hit in without)


async def test_no_seconds_rerank_nothing(world):
    for task in NEAR:
        await save(world, task)
    still = reranking(world, OverlapReranker(), RerankBounds(candidates=20, seconds=0.0))
    answer = await ask(still, ASKED, rerank=True)
    assert answer.unreached == len(NEAR)
    assert tasks(answer) == tasks(await ask(world, ASKED))


async def test_a_missing_model_is_an_error_of_its_own_and_only_when_asked_for(world):
    await save(world, NEAR[0])
    without = reranking(world, Missing())
    assert len((await ask(without, ASKED)).hits) == 1
    with pytest.raises(RerankerUnavailableError) as caught:
        await ask(without, ASKED, rerank=True)
    assert isinstance(caught.value.__cause__, ModelUnavailableError)


async def test_reranking_nothing_is_no_error(world):
    answer = await ask(world, ASKED, rerank=True)
    assert (answer.hits, answer.unreached) == ([], 0)
    await save(world, NEAR[0])
    [hit] = (await ask(world, ASKED, rerank=True)).hits
    assert part(hit, "rerank") is None  # one alone has no order
    wordless = await ask(world, "?!", rerank=True)
    assert (wordless.hits, wordless.wordless) == ([], True)


async def test_memories_are_reranked_too(world):
    for content in NEAR:
        await world.services.memories.memories.create(NS, memory(content))
    question = memory_request(RecallOptions(ASKED, 5, rerank=True), MemoryFilter())
    answer = await world.services.recall.memories.find(NS, question)
    assert all(part(hit, "rerank") is not None for hit in answer.hits)


async def test_episodes_are_found_by_words_too(world):
    await world.services.episodes.creator.start(NS, start("Fix E0308 in the parser"))
    for number in range(60):
        await world.services.episodes.creator.start(NS, start(f"Fix error {number} in the parser"))
    question = episode_request(RecallOptions("e0308", 1), EpisodeFilter(), success_only=False)
    [hit] = (await world.services.recall.episodes.find(NS, question)).hits
    assert hit.thing.start.task == "Fix E0308 in the parser"
