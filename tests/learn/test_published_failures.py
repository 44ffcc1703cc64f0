"""What users of other memories reported as failures of learning, for each kind that learns here.

A stale rule that needs six failures to lose its place; success credited to what had failed; one
loss that undoes eight wins; a reranker that overrules what was learned; feedback that counts again
with each repeat, or by half when a batch fails; a write that is not found yet; a memory that fades
until nothing finds it.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lot_grpc.domain.errors import NotInRetrievalError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter, Ranking
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.recall import Answer
from lot_grpc.services.recall.targets import RecallOptions
from lot_grpc.testing.faults import InjectedFault
from tests.learn.kinds import EPISODES, PATTERNS, UNFILTERED, Kind, Memories
from tests.learn.real import RealWorld, real_world
from tests.services.invariants import check_invariants

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]

TEXTS = {
    "script": "Deploy the site to production with the deploy script on the web host",
    "branch": "Deploy the site to production by merging into the release branch",
    "console": "Deploy the site to production from the console of the cloud provider",
    "hotel": "Book a hotel room in Paris for two nights",
    "cake": "Bake a chocolate cake for twelve people",
}
QUERY = "How do I deploy the site to production?"
CLOSE_QUERY = "Deploy the site to production with the script or from the console"
LEARNING = [Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE]
YEAR = 365 * 24 * 3600.0
KINDS = [PATTERNS, Memories(dict.fromkeys(TEXTS, 0.5)), EPISODES]
_NAMESPACES = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_path: Path) -> AsyncIterator[RealWorld]:
    async with real_world(module_path) as opened:
        yield opened


class Scene:
    """A namespace in which the texts are stored as one kind."""

    def __init__(self, world: RealWorld, kind: Kind, ns: str = "") -> None:
        self.world = world
        self.kind = kind
        self.ns = ns or f"{kind}-{next(_NAMESPACES)}"

    async def recall(self, query: str = QUERY, limit: int = 5, **named: Any) -> Answer[Any]:
        request = self.kind.request(RecallOptions(query, limit, **named), UNFILTERED)
        return await self.kind.find(self.world.services, self.ns, request)

    async def save(self, texts: Mapping[str, str]) -> None:
        contents = {one: PatternContent(text) for one, text in texts.items()}
        await self.kind.save(self.world.services, self.ns, contents)

    async def order(self, query: str = QUERY, **named: Any) -> list[str]:
        return self.kind.ids(await self.recall(query, **named))

    async def record(self, outcome: Outcome, *ids: str, **named: Any) -> None:
        draft = self.kind.outcome(ids, outcome, **named)
        await self.world.services.outcomes.recorder.record(self.ns, draft)

    async def use(self, outcome: Outcome, *ids: str, query: str = QUERY) -> None:
        """Recall, and report how it went with some of what was shown."""
        answer = await self.recall(query)
        await self.record(outcome, *ids, retrieval_id=answer.retrieval_id)

    async def counts(self) -> dict[str, tuple[int, int]]:
        """Successes and failures of what has any."""
        found = {}
        for one in TEXTS:
            stats = await self.kind.outcomes(self.world.services, self.ns, one)
            if stats.usage_count:
                found[one] = stats.success_count, stats.failure_count
        return found


@pytest_asyncio.fixture(loop_scope="module", params=KINDS, ids=str)
async def scene(world: RealWorld, request: pytest.FixtureRequest) -> Scene:
    made = Scene(world, request.param)
    await made.save(TEXTS)
    return made


async def near_ties(scene: Scene, query: str = QUERY) -> tuple[str, str]:
    """The first two hits, which are near enough to change places."""
    answer = await scene.recall(query, ranking=Ranking.RELEVANCE)
    first, second = answer.hits[:2]
    assert 0 < first.score - second.score < 0.05
    ids = scene.kind.ids(answer)
    return ids[0], ids[1]


async def test_two_failures_and_one_success_of_another_change_their_places(scene: Scene):
    stale, fresh = await near_ties(scene)
    await scene.use(Outcome.SUCCESS, stale)  # it was right once
    await scene.use(Outcome.FAILURE, stale)
    await scene.use(Outcome.FAILURE, stale)
    await scene.use(Outcome.SUCCESS, fresh)
    for ranking in LEARNING:
        order = await scene.order(ranking=ranking, seed=1)
        assert order.index(fresh) < order.index(stale), ranking
    assert (await scene.order())[0] == fresh


async def test_failing_and_then_succeeding_credits_what_succeeded_and_nothing_else(scene: Scene):
    failed, succeeded = await near_ties(scene)
    answer = await scene.recall()
    await scene.record(Outcome.FAILURE, failed, retrieval_id=answer.retrieval_id)
    await scene.record(Outcome.SUCCESS, succeeded, retrieval_id=answer.retrieval_id)
    assert await scene.counts() == {failed: (0, 1), succeeded: (1, 0)}
    after = await scene.recall()
    known = {one: hit.evidence for one, hit in zip(scene.kind.ids(after), after.hits, strict=True)}
    assert {one for one, evidence in known.items() if evidence.trials} == {failed, succeeded}
    assert known[succeeded].same_query == (1.0, 1.0)
    assert known[failed].same_query == (0.0, 1.0)
    assert scene.kind.ids(after)[0] == succeeded


async def test_one_loss_after_eight_wins_leaves_it_proven(scene: Scene):
    untried, proven = await near_ties(scene, CLOSE_QUERY)
    for _ in range(8):
        await scene.use(Outcome.SUCCESS, proven, query=CLOSE_QUERY)
    for ranking in LEARNING:
        assert (await scene.order(CLOSE_QUERY, ranking=ranking, seed=1))[:2] == [proven, untried]
    await scene.use(Outcome.FAILURE, proven, query=CLOSE_QUERY)
    for ranking in LEARNING:
        assert (await scene.order(CLOSE_QUERY, ranking=ranking, seed=1))[:2] == [proven, untried]
    stats = await scene.kind.outcomes(scene.world.services, scene.ns, proven)
    assert stats.reliability > 0.5
    assert stats.success_rate >= 0.7


async def test_one_loss_after_eight_wins_passes_the_filters_of_success(world: RealWorld):
    scene = Scene(world, PATTERNS)
    await scene.save(TEXTS)
    for outcome in [Outcome.SUCCESS] * 8 + [Outcome.FAILURE]:
        await scene.use(outcome, "script")
    narrowed = PatternFilter(min_success_rate=0.7, min_reliability=0.5, min_usage_count=9)
    request = PATTERNS.request(RecallOptions(QUERY, 5), narrowed)
    assert PATTERNS.ids(await PATTERNS.find(world.services, scene.ns, request)) == ["script"]


async def test_an_important_memory_that_fails_comes_after_another_that_works(world: RealWorld):
    important = {"script": 0.2, "branch": 1.0, "console": 0.2}
    scene = Scene(world, Memories(important))
    await scene.save(TEXTS)
    by_relevance = await scene.order(ranking=Ranking.RELEVANCE)
    assert by_relevance.index("script") < by_relevance.index("branch")
    assert (await scene.order())[0] == "branch"
    await scene.use(Outcome.FAILURE, "branch")
    await scene.use(Outcome.FAILURE, "branch")
    await scene.use(Outcome.SUCCESS, "script")
    after = await scene.recall()
    assert scene.kind.ids(after)[0] == "script"
    parts = {part.name: part for part in after.hits[0].parts}
    assert parts["importance"].value == pytest.approx(-0.6)
    assert parts["learned"].value > 0


async def test_with_rerank_what_was_learned_decides_among_near_ties(scene: Scene):
    by_relevance = await scene.recall(rerank=True, ranking=Ranking.RELEVANCE)
    liked, other = scene.kind.ids(by_relevance)[:2]
    first, second = by_relevance.hits[:2]
    assert 0 < first.score - second.score < RankingWeights().reorder_margin
    assert any(part.name == "rerank" for part in first.parts)
    for _ in range(3):
        await scene.use(Outcome.FAILURE, liked)
        await scene.use(Outcome.SUCCESS, other)
    assert (await scene.order(rerank=True))[0] == other
    assert (await scene.order(rerank=True, ranking=Ranking.RELIABLE)).index(other) == 0


@pytest.mark.parametrize("rerank", [False, True])
async def test_what_was_learned_decides_nothing_beyond_the_margin(scene: Scene, rerank: bool):
    plain = await scene.recall(CLOSE_QUERY, rerank=rerank, ranking=Ranking.RELEVANCE)
    first, second, third = scene.kind.ids(plain)[:3]
    margin, weight = RankingWeights().reorder_margin, RankingWeights().learned
    assert margin < plain.hits[0].score - plain.hits[2].score < 2 * weight
    for _ in range(15):
        await scene.record(Outcome.FAILURE, first, second, query=CLOSE_QUERY)
        await scene.record(Outcome.SUCCESS, third, query=CLOSE_QUERY)
    for ranking in LEARNING:
        order = await scene.order(CLOSE_QUERY, rerank=rerank, ranking=ranking, seed=1)
        assert {*order[:2]} == {first, second}, ranking


async def test_the_same_feedback_again_changes_nothing(scene: Scene):
    stale, fresh = await near_ties(scene)
    answer = await scene.recall()
    sent = {"retrieval_id": answer.retrieval_id, "request_id": "feedback-1"}
    await scene.record(Outcome.FAILURE, stale, fresh, **sent)
    counts, scores = await scene.counts(), await scored(scene)
    assert counts == {stale: (0, 1), fresh: (0, 1)}
    for _ in range(3):
        await scene.record(Outcome.FAILURE, stale, fresh, **sent)
    await scene.world.restart()
    await scene.record(Outcome.FAILURE, stale, fresh, **sent)
    assert (await scene.counts(), await scored(scene)) == (counts, scores)


async def scored(scene: Scene) -> list[tuple[str, float]]:
    answer = await scene.recall()
    ids = scene.kind.ids(answer)
    return [(one, hit.score) for one, hit in zip(ids, answer.hits, strict=True)]


async def test_feedback_that_a_death_cut_short_counts_once_and_whole(scene: Scene):
    """At every write: after a restart it counts for all or none, and for all once sent again."""
    world, used = scene.world, ("script", "branch", "console")
    for n in itertools.count(1):
        fresh = Scene(world, scene.kind)
        await fresh.save(TEXTS)
        sent = {"retrieval_id": (await fresh.recall()).retrieval_id, "request_id": "feedback"}
        await world.services.runtime.retrievals.flush()
        world.store.fail_at(n)
        try:
            await fresh.record(Outcome.FAILURE, *used, **sent)
        except InjectedFault:
            died = True
        else:
            died = False
        await world.restart()
        await check_invariants(world.store.inner, fresh.ns)
        assert await fresh.counts() in ({}, dict.fromkeys(used, (0, 1)))
        await fresh.record(Outcome.FAILURE, *used, **sent)
        assert await fresh.counts() == dict.fromkeys(used, (0, 1))
        await check_invariants(world.store.inner, fresh.ns)
        if not died:
            break
    assert n > 2


async def test_feedback_of_which_one_part_is_refused_leaves_nothing(scene: Scene):
    answer = await scene.recall()
    await scene.save({"later": "Deploy the site to production by hand"})
    for sent, wrong, reason in [
        ({"retrieval_id": answer.retrieval_id}, "later", NotInRetrievalError),
        ({"retrieval_id": answer.retrieval_id}, "gone", NotInRetrievalError),
        ({"query": QUERY}, "gone", scene.kind.spec.missing),
    ]:
        with pytest.raises(reason):
            await scene.record(Outcome.FAILURE, "script", wrong, "branch", request_id="r", **sent)
    assert await scene.counts() == {}
    assert not any(hit.evidence.trials for hit in (await scene.recall()).hits)
    await scene.record(Outcome.SUCCESS, "script", request_id="r")  # it was never taken
    assert await scene.counts() == {"script": (1, 0)}


async def test_an_outcome_of_several_kinds_is_whole_or_nothing(world: RealWorld):
    ns = f"kinds-{next(_NAMESPACES)}"
    scenes = [Scene(world, kind, ns) for kind in KINDS]
    for scene in scenes:
        await scene.save(TEXTS)
    for ids in (("script",), ("gone",)):
        used: dict[str, Any] = {f"{scene.kind.spec.id_key}s": ("script",) for scene in scenes}
        used |= {f"{scenes[-1].kind.spec.id_key}s": ids}
        draft = replace(OutcomeDraft((), Outcome.SUCCESS, query=QUERY), **used)
        if ids == ("gone",):
            with pytest.raises(scenes[-1].kind.spec.missing):
                await world.services.outcomes.recorder.record(ns, draft)
        else:
            await world.services.outcomes.recorder.record(ns, draft)
        assert [await scene.counts() for scene in scenes] == [{"script": (1, 0)}] * len(scenes)


async def test_a_recall_right_after_a_write_finds_it(scene: Scene):
    for n in range(5):
        one, text = f"new-{n}", f"Rotate the signing key number {n} of the token service"
        await scene.save({one: text})
        assert (await scene.order(text, limit=1)) == [one]
        await scene.record(Outcome.SUCCESS, one, query=text)
        [hit] = (await scene.recall(text, limit=1)).hits
        assert hit.evidence.same_query == pytest.approx((1.0, 1.0), abs=1e-4)


@pytest.mark.parametrize("ranking", list(Ranking))
async def test_nothing_fades_until_its_exact_text_does_not_find_it(scene: Scene, ranking: Ranking):
    text = TEXTS["hotel"]
    for _ in range(30):
        await scene.record(Outcome.FAILURE, "hotel", query=text)
        await scene.record(Outcome.SUCCESS, "cake", query=text)
    for years in (0, 1, 20):
        scene.world.clock.advance(years * YEAR)
        assert await scene.order(text, limit=1, ranking=ranking, seed=1) == ["hotel"]
        assert "hotel" in await scene.order(text, ranking=ranking, seed=1)


async def test_of_near_ties_the_one_that_failed_is_still_found_by_its_exact_text(scene: Scene):
    """Another that works comes first, and it comes second; by relevance it comes first."""
    text = TEXTS["script"]
    for _ in range(30):
        await scene.record(Outcome.FAILURE, "script", query=text)
        await scene.record(Outcome.SUCCESS, "branch", query=text)
    assert "script" in await scene.order(text, limit=2)
    for ranking in (Ranking.RELEVANCE, Ranking.SIMILARITY):
        assert await scene.order(text, limit=1, ranking=ranking) == ["script"]
