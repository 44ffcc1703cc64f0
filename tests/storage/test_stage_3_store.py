"""The store that stage 3 left behind opens as it is, and what was learned in it is known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lot_grpc.domain.pattern import PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.services.backfill import bring_up_to_date
from lot_grpc.services.build import Services
from lot_grpc.services.cell_backfill import needs_cells
from lot_grpc.services.error_backfill import needs_reading, read_errors_anew
from lot_grpc.services.memories.error_finder import ErrorQuery
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import NS, open_services
from tests.fixtures.stage_3 import ARCHIVE, STATE
from tests.services.invariants import check_invariants

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_path: Path) -> AsyncIterator[Services]:
    unpack(ARCHIVE, module_path)
    store, opened = await open_services(module_path, FixedClock())
    assert await bring_up_to_date(store, HashingEmbedder()) == 17  # all that has terms
    assert not await needs_cells(store)
    assert await needs_reading(store)
    assert await read_errors_anew(store, HashingEmbedder(), stop=lambda: True) == 0
    assert await needs_reading(store)
    assert await read_errors_anew(store, HashingEmbedder()) == 1
    assert await read_errors_anew(store, HashingEmbedder()) == 0
    assert not await needs_reading(store)
    await opened.housekeeping.roll_forward(starting=True)
    await check_invariants(store, NS)
    yield opened
    await store.close()


async def test_outcomes_corrections_and_feedback_are_known(services: Services) -> None:
    retry = await services.patterns.get(NS, "retry")
    assert (retry.outcomes.success_count, retry.outcomes.partial_count) == (2, 1)
    assert retry.content.confidence == pytest.approx(0.6)
    assert retry.superseded_by == "better"
    log = (await services.outcome_log.list_page(NS, "retry", 10, None)).entries
    assert len(log) == 4
    question = pattern_request(RecallOptions("try it again", 5), PatternFilter(superseded=True))
    hits = (await services.pattern_recall.find(NS, question)).hits
    assert [hit.thing.pattern_id for hit in hits] == ["retry"]
    assert hits[0].evidence.trials > 2


async def test_what_was_distilled_and_extracted_is_there(services: Services) -> None:
    distilled = PatternFilter(kinds=(PatternKind.DISTILLED,))
    (group,) = (await services.patterns.list_page(NS, distilled, 10, None)).patterns
    assert group.content.task == "Buy {number} books"
    books = await services.patterns.get(NS, "books-5")
    assert books.content.parent_pattern_id == group.pattern_id
    learned = PatternFilter(kinds=(PatternKind.LEARNED,))
    (moving,) = (await services.patterns.list_page(NS, learned, 10, None)).patterns
    assert len(moving.content.source_episode_ids) == 4
    assert await services.learned_tasks.matching(NS, ("move it",), [])


async def test_the_rest_is_there(services: Services) -> None:
    assert (await services.error_solutions.get(NS, "key-error")).content.steps == ("use get",)
    assert (await services.policies.get(NS)).policy.max_episodes == 1_000
    assert (await services.decisions.get(NS, "store")).content.chosen_option == "qdrant"
    (best,) = await services.action_values.best(NS, STATE, 3)
    assert best.action == "canary"
    assert best.value == pytest.approx(0.1)


async def test_errors_signed_by_the_rules_of_stage_3_are_found_by_those_of_today(
    services: Services,
) -> None:
    answer = await services.error_finder.find(NS, ErrorQuery(error_message="KeyError: 'b'"))
    [hit] = answer.hits
    assert (hit.error_solution.error_solution_id, hit.exact) == ("key-error", True)
    assert hit.error_solution.signature == answer.signature
    answer = await services.error_finder.find(NS, ErrorQuery(error_message="use get"))
    assert [hit.error_solution.error_solution_id for hit in answer.hits] == ["key-error"]
