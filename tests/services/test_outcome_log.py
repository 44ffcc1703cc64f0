"""Reading the log of outcomes, and undoing an entry by another one."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.errors import (
    OutcomeCorrectedError,
    OutcomeNotFoundError,
    PatternNotFoundError,
    RequestIdReusedError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft, LoggedOutcome
from lot_grpc.services.records.collections import CONTEXT_STATS
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    of_pattern,
    open_world,
    outcome,
    payloads,
    save,
)


async def entries(world: World, pattern_id: str) -> list[LoggedOutcome]:
    return (
        await world.services.outcomes.log.list_page(NS, of_pattern(pattern_id), 100, None)
    ).items


async def correct(world: World, outcome_id: str, instead: Outcome | None = None, **named):
    draft = CorrectionDraft(outcome_id, instead, **named)
    return (await world.services.outcomes.log.correct(NS, draft)).patterns


async def used(world: World, *kinds: Outcome, query: str = "how") -> str:
    pattern_id = (await save(world)).pattern.pattern_id
    for kind in kinds:
        await outcome(world, pattern_id, outcome=kind, query=query, duration=2.0)
    return pattern_id


S, F, P = Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL


async def test_the_log_is_newest_first_in_pages(world):
    one = await used(world, S, F, P)
    told = await entries(world, one)
    assert [entry.recorded.outcome for entry in told] == [P, F, S]
    first = await world.services.outcomes.log.list_page(NS, of_pattern(one), 2, None)
    rest = await world.services.outcomes.log.list_page(NS, of_pattern(one), 2, first.next)
    assert [*first.items, *rest.items] == told
    assert rest.next is None


async def test_the_log_of_a_pattern_that_is_not_there_is_an_error(world):
    with pytest.raises(PatternNotFoundError):
        await entries(world, "none")


async def test_a_repeated_save_stands_in_the_log(world):
    one = await used(world, F)
    await save(world)
    log = [e.recorded for e in await entries(world, one)]
    assert [(e.outcome, e.from_repeated_save) for e in log] == [(S, True), (F, False)]


@pytest.mark.parametrize("instead", [None, F, P])
async def test_a_correction_comes_to_what_would_have_been(world, instead):
    one = await used(world, F, S, S, P)
    wrong = (await entries(world, one))[2].recorded
    (counted,) = await correct(world, wrong.outcome_id, instead)
    other = await open_world()
    kinds = [F, *([instead] if instead else []), S, P]
    wanted = (await other.services.patterns.patterns.get(NS, await used(other, *kinds))).outcomes
    assert counted.outcomes.success_rate == pytest.approx(wanted.success_rate)
    for field in ("success_count", "failure_count", "partial_count", "duration_count"):
        assert getattr(counted.outcomes, field) == getattr(wanted, field)
    assert await world.services.patterns.patterns.get(NS, one) == counted
    (stats,) = await payloads(world, CONTEXT_STATS)
    (wanted_cell,) = await payloads(other, CONTEXT_STATS)
    assert stats["count"] == wanted_cell["count"]
    if instead is not None:
        assert stats["successes"] == pytest.approx(wanted_cell["successes"])
        assert stats["trials"] == pytest.approx(wanted_cell["trials"])
    await check_invariants(world.store, NS)


async def test_a_correction_is_an_entry_and_the_old_one_names_it(world):
    one = await used(world, S)
    (wrong,) = await entries(world, one)
    await correct(world, wrong.recorded.outcome_id, F, note="it had not worked")
    newer, older = await entries(world, one)
    assert (newer.recorded.corrects_outcome_id, newer.recorded.outcome) == (
        wrong.recorded.outcome_id,
        F,
    )
    assert (newer.recorded.note, newer.corrected_by_outcome_id) == ("it had not worked", "")
    assert older.corrected_by_outcome_id == newer.recorded.outcome_id


async def test_an_entry_is_corrected_once_and_its_correction_can_be_corrected(world):
    one = await used(world, S, S)
    wrong = (await entries(world, one))[1].recorded
    await correct(world, wrong.outcome_id)
    with pytest.raises(OutcomeCorrectedError, match="correct that one"):
        await correct(world, wrong.outcome_id, F)
    latest = (await entries(world, one))[0].recorded
    (counted,) = await correct(world, latest.outcome_id, F)
    assert (counted.outcomes.success_count, counted.outcomes.failure_count) == (1, 1)
    assert counted.outcomes.success_rate == pytest.approx(0.7 * 1.0 * 0.7 + 0.3)
    await check_invariants(world.store, NS)


async def test_all_patterns_of_a_call_are_corrected(world):
    ids = [(await save(world, name)).pattern.pattern_id for name in ("one", "two")]
    await outcome(world, *ids)
    (entry,) = await entries(world, ids[0])
    counted = await correct(world, entry.recorded.outcome_id, F)
    assert {p.pattern_id for p in counted} == set(ids)
    assert [p.outcomes.failure_count for p in counted] == [1, 1]


async def test_an_unknown_entry_is_an_error_and_so_is_one_of_another_namespace(world):
    one = await used(world, S)
    (entry,) = await entries(world, one)
    with pytest.raises(OutcomeNotFoundError):
        await correct(world, "o-none")
    draft = CorrectionDraft(entry.recorded.outcome_id)
    with pytest.raises(OutcomeNotFoundError):
        await world.services.outcomes.log.correct("other", draft)


async def test_a_repeat_by_request_corrects_once(world):
    one = await used(world, S, S)
    wrong = (await entries(world, one))[0].recorded
    first = await correct(world, wrong.outcome_id, F, request_id="r")
    assert await correct(world, wrong.outcome_id, F, request_id="r") == first
    assert len(await entries(world, one)) == 3
    with pytest.raises(RequestIdReusedError):
        await correct(world, wrong.outcome_id, P, request_id="r")


async def test_of_two_corrections_at_once_one_counts():
    clock = FixedClock()
    store = Interleaving(SharedStore(clock))
    world = await open_world(store, clock)
    ids = [(await save(world, name)).pattern.pattern_id for name in ("one", "two")]
    await outcome(world, *ids, query="how")
    (entry,) = await entries(world, ids[0])
    tried = await asyncio.gather(
        correct(world, entry.recorded.outcome_id, F),
        correct(world.another_process(), entry.recorded.outcome_id, P),
        return_exceptions=True,
    )
    lost = [result for result in tried if isinstance(result, OutcomeCorrectedError)]
    assert len(lost) == 1
    await check_invariants(store, NS)
    patterns = [await world.services.patterns.patterns.get(NS, one) for one in ids]
    kinds = {(p.outcomes.failure_count, p.outcomes.partial_count) for p in patterns}
    assert len(kinds) == 1


async def test_what_came_into_a_cell_that_was_merged_is_corrected_where_it_is_now(world):
    one = (await save(world)).pattern.pattern_id
    for n in range(80):
        await outcome(world, one, query=f"query number {n}")
    for entry in (await entries(world, one))[::16]:
        await correct(world, entry.recorded.outcome_id)
    await check_invariants(world.store, NS)
    all_stats = await payloads(world, CONTEXT_STATS)
    assert sum(stats["count"] for stats in all_stats) == 75
