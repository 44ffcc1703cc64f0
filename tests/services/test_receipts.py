"""What became of a retrieval: the outcomes that name it, as they stand; and hashed queries."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.errors import NotInRetrievalError
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.retrieval import (
    Receipt,
    RetrievalFilter,
    RetrievalQueries,
    query_hash,
)
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.ports import Embedding
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES, RETRIEVALS
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.testing.hashing import HashingEmbedder
from tests.services.world import (
    NS,
    World,
    draft,
    memory,
    of_pattern,
    open_world,
    outcome,
    payloads,
    recall,
    rows,
    save,
)

QUERY = "log in to the site"
SUCCESS, FAILURE, PARTIAL = Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL
HASHES = PolicyEdit(
    NamespacePolicy(retrieval_queries=RetrievalQueries.HASH), frozenset({"retrieval_queries"})
)


async def record(world: World, result: Outcome, **named: Any) -> str:
    used = OutcomeDraft(named.pop("pattern_ids", ()), result, **named)
    return (await world.services.outcomes.recorder.record(NS, used)).outcome_id


async def receipt(world: World, retrieval_id: str) -> Receipt:
    return await world.services.receipts.receipt(NS, retrieval_id)


async def listed(world: World, size: int = 100, **narrowed: Any) -> list[str]:
    found, after = [], None
    while True:
        page = await world.services.receipts.receipts_page(
            NS, RetrievalFilter(**narrowed), size, after
        )
        found += [one.retrieval.retrieval_id for one in page.items]
        after = page.next
        if after is None:
            return found


# --- outcomes ---------------------------------------------------------------------------------


async def test_a_receipt_says_what_was_used_of_every_kind_and_how_it_went(world):
    await save(world, QUERY, pattern_id="p")
    await save(world, f"{QUERY} again", pattern_id="q")
    await world.services.memories.memories.create(NS, memory(QUERY, memory_id="m"))
    context = await world.services.task_contexts.gather(
        NS, ContextRequest(QUERY, min_similarity=0.0)
    )
    named = {"retrieval_id": context.retrieval_id}
    first = await record(
        world, FAILURE, pattern_ids=("p",), memory_ids=("m",), note="hm", reward=-0.5, **named
    )
    second = await record(world, SUCCESS, pattern_ids=("p",), duration=2.0, **named)
    found = await receipt(world, context.retrieval_id)
    one, two = found.outcomes
    assert (one.outcome_id, one.outcome, one.note, one.reward) == (first, FAILURE, "hm", -0.5)
    assert set(one.used) == {of_pattern("p"), ResourceRef("memory", "m")}
    assert (two.outcome_id, two.outcome, two.used, two.duration) == (
        second,
        SUCCESS,
        (of_pattern("p"),),
        2.0,
    )
    assert found.outcome_by_resource == {
        of_pattern("p"): SUCCESS,
        ResourceRef("memory", "m"): FAILURE,
    }


async def test_nothing_was_used_is_an_outcome_too(world):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    await record(world, FAILURE, retrieval_id=answer.retrieval_id)
    [only] = (await receipt(world, answer.retrieval_id)).outcomes
    assert (only.outcome, only.used) == (FAILURE, ())


async def test_that_nothing_was_used_is_not_lost_with_an_unwritten_retrieval(world):
    """It says nothing without the retrieval, and nothing would ever delete it."""
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    await record(world, FAILURE, retrieval_id=answer.retrieval_id)
    restarted = world.another_process()
    [only] = (await receipt(restarted, answer.retrieval_id)).outcomes
    assert (only.outcome, only.used) == (FAILURE, ())


@pytest.mark.parametrize("twice", [False, True])
async def test_a_correction_of_an_earlier_use_is_not_the_latest_use(world, twice):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    named = {"pattern_ids": ("p",), "retrieval_id": answer.retrieval_id}
    wrong = await record(world, PARTIAL, **named)
    latest = await record(world, FAILURE, **named)
    log = world.services.outcomes.log
    corrected = await log.correct(NS, CorrectionDraft(wrong, SUCCESS))
    if twice:
        corrected = await log.correct(NS, CorrectionDraft(corrected.outcome_id, PARTIAL))
    found = await receipt(world, answer.retrieval_id)
    assert [one.outcome_id for one in found.outcomes] == [corrected.outcome_id, latest]
    assert found.outcome_by_resource == {of_pattern("p"): FAILURE}


async def test_what_stands_after_a_correction_counts(world):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    wrong = await record(world, FAILURE, pattern_ids=("p",), retrieval_id=answer.retrieval_id)
    log = world.services.outcomes.log
    corrected = await log.correct(NS, CorrectionDraft(wrong, SUCCESS, "it worked"))
    [only] = (await receipt(world, answer.retrieval_id)).outcomes
    assert (only.outcome_id, only.outcome, only.note) == (
        corrected.outcome_id,
        SUCCESS,
        "it worked",
    )
    assert only.used == (of_pattern("p"),)
    await log.correct(NS, CorrectionDraft(corrected.outcome_id))
    assert (await receipt(world, answer.retrieval_id)).outcomes == ()


async def test_the_outcomes_go_with_what_was_used(world):
    """The log of a record is deleted with it; the receipt still says that it was shown."""
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    await record(world, SUCCESS, pattern_ids=("p",), retrieval_id=answer.retrieval_id)
    await world.services.patterns.patterns.delete(NS, "p", "")
    found = await receipt(world, answer.retrieval_id)
    assert found.outcomes == ()
    assert [one.resource for one in found.retrieval.items] == [of_pattern("p")]


async def test_outcomes_of_another_namespace_are_not_joined(world):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    used = OutcomeDraft(("p",), SUCCESS, answer.retrieval_id, QUERY)
    await world.services.patterns.writer.save("other", draft(QUERY, pattern_id="p"))
    await world.services.outcomes.recorder.record("other", used)
    assert (await receipt(world, answer.retrieval_id)).outcomes == ()


@pytest.mark.parametrize("size", [1, 2, 100])
async def test_a_list_is_narrowed_by_whether_there_is_an_outcome(world, size):
    await save(world, QUERY, pattern_id="p")
    ids = [(await recall(world, QUERY)).retrieval_id for _ in range(7)]
    for number in (1, 4, 5):
        await record(world, SUCCESS, pattern_ids=("p",), retrieval_id=ids[number])
    assert await listed(world, size, has_outcome=True) == [ids[5], ids[4], ids[1]]
    assert await listed(world, size, has_outcome=False) == [ids[6], ids[3], ids[2], ids[0]]


async def test_a_page_ends_short_where_many_are_passed_by(world):
    await save(world, QUERY, pattern_id="p")
    first = (await recall(world, QUERY)).retrieval_id
    await record(world, SUCCESS, pattern_ids=("p",), retrieval_id=first)
    for _ in range(700):
        await recall(world, QUERY)
    read = world.services.receipts.receipts_page
    page = await read(NS, RetrievalFilter(has_outcome=True), 5, None)
    assert page.items == []
    assert page.next is not None
    rest = await read(NS, RetrievalFilter(has_outcome=True), 5, page.next)
    assert [one.retrieval.retrieval_id for one in rest.items] == [first]
    assert rest.next is None


async def test_the_outcome_of_nothing_used_goes_with_the_retrieval(world):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    await world.services.runtime.retrievals.flush()
    await record(world, FAILURE, retrieval_id=answer.retrieval_id)
    await record(world, SUCCESS, pattern_ids=("p",), retrieval_id=answer.retrieval_id)
    world.clock.advance(8 * 24 * 3600)
    await world.services.housekeeping.drop_expired()
    [left] = await payloads(world, OUTCOMES)
    assert (left["resource_kind"], left["resource_id"]) == ("pattern", "p")
    assert await rows(world.store, RETRIEVALS) == []


async def test_a_clear_of_retrievals_takes_the_outcomes_of_nothing_used_along(world):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    await record(world, FAILURE, retrieval_id=answer.retrieval_id)
    await record(world, SUCCESS, pattern_ids=("p",), retrieval_id=answer.retrieval_id)
    await world.services.clearing.clearer.clear(NS, ("retrieval",))
    [left] = await payloads(world, OUTCOMES)
    assert left["resource_id"] == "p"
    assert await listed(world) == []


# --- hashed queries ---------------------------------------------------------------------------


class Recording(HashingEmbedder):
    """Keeps the queries that it embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    async def embed_query(self, text: str) -> Embedding:
        self.queries.append(text)
        return await super().embed_query(text)


@pytest.fixture
async def hashing() -> World:
    world = await open_world(embedder=Recording())
    await world.services.retention.policies.update(NS, HASHES, "")
    await save(world, QUERY, pattern_id="p")
    return world


@pytest.mark.parametrize("written", [True, False])
async def test_an_outcome_that_names_only_the_retrieval_is_learned_by_its_vector(hashing, written):
    answer = await recall(hashing, QUERY)
    if written:
        await hashing.services.runtime.retrievals.flush()
        hashing = hashing.another_process()
    await outcome(hashing, "p", retrieval_id=answer.retrieval_id)
    assert hashing.embedder.queries == [QUERY]
    [stats] = await hashing.store.scroll(CONTEXT_STATS, NS, [], limit=9, vectors=True)
    assert (stats.payload["query"], stats.payload["count"]) == (query_hash(QUERY), 1)
    assert list(stats.vectors["query"]) == pytest.approx(list(answer.vector), abs=1e-6)
    [fact] = await payloads(hashing, OUTCOMES)
    assert fact["query"] == query_hash(QUERY)
    again = await recall(hashing, QUERY, explain=True)
    assert again.hits[0].evidence.same_query == pytest.approx((1.0, 1.0))


async def test_outcomes_of_one_hashed_query_add_up_and_can_be_corrected(hashing):
    ids = []
    for result in (FAILURE, SUCCESS):
        answer = await recall(hashing, QUERY)
        ids.append(
            await record(hashing, result, pattern_ids=("p",), retrieval_id=answer.retrieval_id)
        )
    [stats] = await payloads(hashing, CONTEXT_STATS)
    assert stats["count"] == 2
    await hashing.services.outcomes.log.correct(NS, CorrectionDraft(ids[0]))
    [stats] = await payloads(hashing, CONTEXT_STATS)
    assert stats["successes"] == pytest.approx(stats["trials"])


async def test_what_was_not_shown_is_refused_with_hashes_too(hashing):
    await save(hashing, "water the plants", pattern_id="other", language="x")
    answer = await recall(hashing, QUERY, limit=1)
    with pytest.raises(NotInRetrievalError):
        await record(hashing, SUCCESS, pattern_ids=("other",), retrieval_id=answer.retrieval_id)


@pytest.mark.parametrize("vectors", [True, False])
async def test_stats_of_hashed_queries_are_imported_with_their_vectors_or_not_at_all(
    hashing, vectors
):
    answer = await recall(hashing, QUERY)
    await outcome(hashing, "p", retrieval_id=answer.retrieval_id)
    await hashing.services.runtime.retrievals.flush()
    spec = ExportSpec(NS, vectors=vectors)
    moved = [row async for row, _ in hashing.services.transfer.exporter.rows(spec)]
    target = await open_world()
    run = ImportRun(ImportTerms(same_space=vectors))
    await target.services.transfer.importer.take(run, moved)
    assert len(await rows(target.store, CONTEXT_STATS)) == vectors
    assert run.skipped == (not vectors)
    pattern = await target.services.patterns.patterns.get(NS, "p")
    assert pattern.outcomes.success_count == 1
    # The vector of the retrieval is not exported: a further outcome counts as a whole.
    [after] = await outcome(target, "p", retrieval_id=answer.retrieval_id)
    assert after.outcomes.success_count == 2
    assert len(await rows(target.store, CONTEXT_STATS)) == vectors
