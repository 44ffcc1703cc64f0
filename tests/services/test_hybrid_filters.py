"""Filters in a search of both legs: Qdrant Edge, the reference store, and arithmetic by hand.

Several hundred patterns and as many questions, made from seeds. Every hit satisfies the filter;
what Edge answers is what the exact answer is.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path

import pytest
import pytest_asyncio

from lot_grpc.domain.fusion import FusionWeights, Relevance
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent, PatternKind, PatternType, search_text
from lot_grpc.domain.query import Legs, PatternFilter, Ranking
from lot_grpc.lexical.bm25 import document_vector, lexical_query
from lot_grpc.ports import SparseVector, VectorStore
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.recall.recall import Hit
from lot_grpc.services.recall.search import SearchRequest
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_conditions, pattern_point, pattern_record
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, World, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = 360
LANGUAGES = ("python", "go", "rust", "cpp", "")
TAGS = ("x", "y", "team=core", "émigré", "修复")
LABELS = ("core", "web", "a.b=c")
CATEGORIES = ("backend", "Backend", "ui", "")
WORDS = (
    *("parse", "json", "date", "server", "connect", "retry", "token", "cache", "build", "index"),
    *("query", "table", "row", "user", "login", "click", "button", "cheapest", "product", "site"),
    *("order", "cancel", "deploy", "rollback", "cluster", "pod", "log", "error", "timeout", "how"),
    *("E0308", "ECONNREFUSED", "getUserName", "retry_count", "src/main.rs", "v1.2.3", "the", "of"),
    *("数据库", "迁移", "连接", "базу", "данных", "сервера", "файл", "подключение", "and", "to"),
)


def text(rng: random.Random, most: int = 24) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(4, most)))


def pattern(rng: random.Random, number: int, now: int) -> Pattern:
    wins, losses = rng.randint(0, 9), rng.randint(0, 6)
    content = PatternContent(
        text(rng),
        kind=rng.choice(list(PatternKind)),
        pattern_type=rng.choice(list(PatternType)),
        context=text(rng) if rng.random() < 0.3 else "",
        code=f"def f{number}():\n  return {text(rng, 40)}" if rng.random() < 0.4 else "",
        language=rng.choice(LANGUAGES),
        category=rng.choice(CATEGORIES),
        tags=tuple(rng.sample(TAGS, rng.randint(0, 3))),
        tools=tuple(rng.sample(("curl", "jq", "sed"), rng.randint(0, 2))),
        labels={"team": rng.choice(LABELS)} if rng.random() < 0.6 else {},
        pinned=rng.random() < 0.3,
        expire_time=rng.choice([None, None, now + 60_000_000, now - 60_000_000]),
    )
    return Pattern(
        NS if rng.random() < 0.85 else "another-team",
        f"p{number:03}",
        content,
        OutcomeStats(rng.choice([0.0, 0.25, 0.5, 0.7, 1.0]), wins, losses, last_used_time=now),
        revision=1,
        create_time=now - rng.randint(0, 100) * 1_000_000,
        update_time=now,
    )


def narrowing(rng: random.Random, now: int) -> PatternFilter:
    """A filter of some of the fields that a filter has."""
    fields: dict[str, Callable[[], object]] = {
        "languages": lambda: tuple(rng.sample(LANGUAGES[:4], 2)),
        "kinds": lambda: tuple(rng.sample(list(PatternKind), 2)),
        "pattern_types": lambda: tuple(rng.sample(list(PatternType), 2)),
        "categories": lambda: tuple(rng.sample(CATEGORIES[:3], 2)),
        "tags_any": lambda: tuple(rng.sample(TAGS, 2)),
        "tags_all": lambda: (rng.choice(TAGS),),
        "tools": lambda: (rng.choice(("curl", "jq")),),
        "labels": lambda: {"team": rng.choice(LABELS)},
        "min_success_rate": lambda: rng.choice([0.25, 0.6, 0.7]),
        "min_reliability": lambda: rng.choice([0.2, 0.4]),
        "min_usage_count": lambda: rng.randint(1, 12),
        "created_after": lambda: now - rng.randint(20, 100) * 1_000_000,
        "created_before": lambda: now - rng.randint(0, 60) * 1_000_000,
        "pinned": lambda: rng.random() < 0.5,
    }
    named = rng.sample(sorted(fields), rng.choice([0, 1, 1, 2, 2, 3]))
    return PatternFilter(**{name: fields[name]() for name in named})  # type: ignore[arg-type]


def satisfies(one: Pattern, asked: PatternFilter, now: int) -> bool:
    """The filter by the book, not by way of conditions."""
    content, outcomes = one.content, one.outcomes
    return all(
        (
            one.namespace == NS,
            content.expire_time is None or content.expire_time > now,
            not asked.languages or content.language in asked.languages,
            not asked.kinds or content.kind in asked.kinds,
            not asked.pattern_types or content.pattern_type in asked.pattern_types,
            not asked.categories or content.category in asked.categories,
            not asked.tags_any or set(asked.tags_any) & set(content.tags),
            set(asked.tags_all) <= set(content.tags),
            not asked.tools or set(asked.tools) & set(content.tools),
            asked.labels.items() <= content.labels.items(),
            outcomes.success_rate >= asked.min_success_rate,
            outcomes.reliability >= asked.min_reliability,
            outcomes.usage_count >= asked.min_usage_count,
            asked.created_after is None or one.create_time > asked.created_after,
            asked.created_before is None or one.create_time < asked.created_before,
            asked.pinned is None or content.pinned == asked.pinned,
        )
    )


@dataclass
class Pair:
    """The same patterns in Edge and in the reference store, by their points."""

    edge: World
    exact: World
    patterns: dict[str, Pattern]
    now: int

    def passing(self, asked: PatternFilter) -> dict[str, Pattern]:
        return {p: one for p, one in self.patterns.items() if satisfies(one, asked, self.now)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(module_path: Path) -> AsyncIterator[Pair]:
    clock = FixedClock()
    rng = random.Random(20)
    patterns = [pattern(rng, number, clock.now()) for number in range(COUNT)]
    embedder = HashingEmbedder()
    indexed = await Indexer(embedder).vectors([search_text(one.content) for one in patterns])
    records = [
        pattern_record(one, number, vectors.vectors)
        for number, (one, vectors) in enumerate(zip(patterns, indexed, strict=True))
    ]
    stores: list[VectorStore] = [
        EdgeStore(module_path / "data", clock, min_free_bytes=0),
        InMemoryStore(clock),
    ]
    worlds = [await open_world(store, clock) for store in stores]
    for store in stores:
        await store.put(PATTERNS, records)
    by_point = {pattern_point(one.namespace, one.pattern_id): one for one in patterns}
    yield Pair(worlds[0], worlds[1], by_point, clock.now())
    for store in stores:
        await store.close()


@dataclass(frozen=True)
class Ask:
    """A question made from a seed."""

    query: str
    narrowed: PatternFilter
    limit: int
    min_similarity: float
    legs: Legs
    ranking: Ranking


def asks(seed: int, now: int, legs: Legs, count: int = 40) -> list[Ask]:
    rng = random.Random(seed)
    return [
        Ask(
            text(rng, rng.choice([5, 12, 40])),
            narrowing(rng, now),
            rng.choice([1, 3, 10, 40, 100]),
            rng.choice([0.0, 0.0, 0.3117, 0.4931]),
            legs,
            rng.choice([Ranking.BALANCED, Ranking.RELEVANCE]),
        )
        for _ in range(count)
    ]


async def candidates(world: World, ask: Ask) -> list[Relevance]:
    """The whole fused pool, before what was learned and before the cut."""
    wanted = SearchRequest(
        ask.query,
        pattern_conditions(ask.narrowed),
        50,
        ask.min_similarity,
        ask.legs,
    )
    return (await world.services.recall.patterns._searching.search(NS, wanted)).found


async def hits(world: World, ask: Ask) -> list[Hit[Pattern]]:
    asked = RecallOptions(ask.query, ask.limit, ask.min_similarity, ask.ranking, legs=ask.legs)
    question = pattern_request(asked, ask.narrowed)
    return (await world.services.recall.patterns.find(NS, question)).hits


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, abs_tol=1e-4)


def assert_same_order(
    got: Sequence[tuple[str, float]], want: Sequence[tuple[str, float]], told: object
) -> None:
    """Equal scores in equal places; of neighbours that are as good as equal either may be first."""
    assert len(got) == len(want), told
    assert all(close(a, b) for (_, a), (_, b) in zip(got, want, strict=True)), (told, got, want)
    for place, ((one, score), (other, _)) in enumerate(zip(got, want, strict=True)):
        if one != other:
            at = {name: value for name, value in want if close(value, score)}
            last = close(score, want[-1][1])  # its equal may have been cut off
            assert one in at or last, (told, place, one, other)


LEGS = pytest.mark.parametrize("legs", list(Legs))


@LEGS
@pytest.mark.parametrize("seed", range(3))
async def test_every_hit_satisfies_the_filter_and_edge_answers_exactly(pair, legs, seed):
    found = 0
    for ask in asks(seed, pair.now, legs):
        passing = {one.pattern_id: one for one in pair.passing(ask.narrowed).values()}
        edge, exact = await hits(pair.edge, ask), await hits(pair.exact, ask)
        for hit in edge:
            assert passing[hit.thing.pattern_id] == hit.thing, ask
            assert hit.similarity >= ask.min_similarity
            total = math.fsum(part.value * part.weight for part in hit.parts)
            assert hit.score == pytest.approx(total)
        assert_same_order(
            [(hit.thing.pattern_id, hit.score) for hit in edge],
            [(hit.thing.pattern_id, hit.score) for hit in exact],
            ask,
        )
        similar = {hit.thing.pattern_id: hit.similarity for hit in exact}
        for hit in edge:
            if hit.thing.pattern_id in similar:
                assert close(hit.similarity, similar[hit.thing.pattern_id]), ask
        if ask.legs is not Legs.BM25 and not ask.min_similarity:
            assert len(edge) == min(ask.limit, len(passing)) or len(passing) > 50, ask
        found += len(edge)
    assert found > 100  # or nothing was proven


@LEGS
async def test_the_whole_pool_is_the_exact_one(pair, legs):
    for ask in asks(11, pair.now, legs, 25):
        edge, exact = await candidates(pair.edge, ask), await candidates(pair.exact, ask)
        assert {one.id for one in edge} <= pair.passing(ask.narrowed).keys(), ask
        assert_same_order(
            [(one.id, one.value) for one in edge], [(one.id, one.value) for one in exact], ask
        )


# --- by hand ----------------------------------------------------------------------------------


async def cosines(ask: Ask, passing: dict[str, Pattern]) -> dict[str, float]:
    """The best cosine of prose and code of each pattern."""
    embedder = HashingEmbedder()
    query = (await embedder.embed_query(ask.query)).vector
    found = {}
    for point, one in passing.items():
        it = search_text(one.content)
        texts = [it.meaning, it.spoken_code] if it.code else [it.meaning]
        vectors = [made.vector for made in await embedder.embed_documents(texts)]
        found[point] = max([0.0, *(math.fsum(map(mul, query, vector)) for vector in vectors)])
    return found


def bm25(
    query: str, passing: dict[str, Pattern], everything: dict[str, Pattern]
) -> dict[str, float]:
    """The scores, with function words where the best hit then is nearly the same text."""
    asked = lexical_query(query)
    form = bm25_of(asked.form or asked.vector, passing, everything)
    if form:
        [(point, _)] = best(form, 1)
        text = search_text(everything[point].content)
        if FusionWeights().words_decide(asked.overlap(text.whole), code=text.bare):
            return form
    return bm25_of(asked.vector, passing, everything)


def bm25_of(
    asked: SparseVector, passing: dict[str, Pattern], everything: dict[str, Pattern]
) -> dict[str, float]:
    """The scores, with inverse document frequencies over the whole collection."""
    documents = {
        point: dict(zip(vector.indices, vector.values, strict=True))
        for point, one in everything.items()
        for vector in [document_vector(search_text(one.content).whole)]
    }
    scores = {}
    for point in passing:
        shared = [i for i in asked.indices if i in documents[point]]
        weights = dict(zip(asked.indices, asked.values, strict=True))
        if shared:
            scores[point] = 0.0
        for index in shared:
            having = sum(index in document for document in documents.values())
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            scores[point] += weights[index] * idf * documents[point][index]
    return scores


def best(scores: dict[str, float], count: int) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:count]


async def test_the_dense_leg_is_the_cosine_worked_out_by_hand(pair):
    for ask in asks(21, pair.now, Legs.DENSE, 15):
        expected = await cosines(ask, pair.passing(ask.narrowed))
        near = {p: cosine for p, cosine in expected.items() if cosine >= ask.min_similarity}
        found = await candidates(pair.edge, ask)
        # Each vector brings a pool, so there may be more; the first ones are sure to be the best.
        nearest = [(one.id, one.similarity) for one in found][:50]
        assert_same_order(nearest, best(near, 50), ask)


async def test_the_lexical_leg_is_bm25_worked_out_by_hand(pair):
    for ask in asks(22, pair.now, Legs.BM25, 15):
        passing = pair.passing(ask.narrowed)
        near = await cosines(ask, passing)
        pool = dict(best(bm25(ask.query, passing, pair.patterns), 50))
        found = await candidates(pair.edge, ask)
        assert {one.id for one in found} == {p for p in pool if near[p] >= ask.min_similarity}
        if not found:
            continue
        # On the scale of the cosine, so in proportion; the bound moves no score.
        top = max(pool.values())
        highest, lowest = max(near[p] for p in pool), min(near[p] for p in pool)
        span = max(highest - lowest, 0.05)
        scaled = {
            p: max(0.0, highest - span) + span * score / top
            for p, score in pool.items()
            if near[p] >= ask.min_similarity
        }
        assert_same_order([(one.id, one.value) for one in found], best(scaled, 50), ask)


async def test_a_hybrid_hit_has_the_cosine_it_has_whatever_leg_brought_it(pair):
    by_words = 0
    for ask in asks(23, pair.now, Legs.HYBRID, 15):
        expected = await cosines(ask, pair.passing(ask.narrowed))
        nearest = {point for point, _ in best(expected, 50)}
        for one in await candidates(pair.edge, ask):
            assert close(one.similarity, expected[one.id]), ask
            by_words += one.id not in nearest
    assert by_words > 5  # hits of the words alone were among them
