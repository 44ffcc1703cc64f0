"""ListOutcomes, CorrectOutcome, and what outcomes do to rankings, on the wire."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.patterns import FAILURE, PARTIAL, SUCCESS, saved
from tests.server.wire import failure

QUERY = "log in to the web site of the city library with the password of the reader"


async def test_the_log_tells_what_was_recorded_newest_first_and_by_pages(lot):
    await saved(lot, pattern_id="p")
    first = await lot.patterns.RecordOutcome(
        pattern_ids=["p"], outcome=SUCCESS, query="how", reward=0.5, note="fine",
        duration=timedelta(seconds=3),
    )  # fmt: skip
    await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=FAILURE)
    page = await lot.patterns.ListOutcomes(pattern_id="p", page_size=1)
    assert [one.outcome for one in page.outcomes] == [FAILURE]
    rest = await lot.patterns.ListOutcomes(
        pattern_id="p", page_size=1, page_token=page.next_page_token
    )
    [one] = rest.outcomes
    assert rest.next_page_token == ""
    assert (one.outcome_id, one.pattern_id, one.outcome) == (first.outcome_id, "p", SUCCESS)
    assert (one.query, one.reward, one.note) == ("how", 0.5, "fine")
    assert one.duration.ToTimedelta() == timedelta(seconds=3)
    assert one.create_time.seconds > 0
    assert (one.corrects_outcome_id, one.corrected_by_outcome_id, one.from_repeated_save) == (
        "",
        "",
        False,
    )


async def test_a_correction_undoes_an_entry_and_may_put_another_outcome_in_its_place(lot):
    await saved(lot, pattern_id="p")
    wrong = await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS)
    answer = await lot.patterns.CorrectOutcome(
        outcome_id=wrong.outcome_id, outcome=PARTIAL, note="half"
    )
    [pattern] = answer.patterns
    told = pattern.outcomes
    assert (told.success_count, told.partial_count, told.usage_count) == (0, 1, 1)
    assert told.success_rate == pytest.approx(0.85)
    newer, older = (await lot.patterns.ListOutcomes(pattern_id="p")).outcomes
    assert (newer.outcome_id, newer.corrects_outcome_id) == (answer.outcome_id, wrong.outcome_id)
    assert older.corrected_by_outcome_id == answer.outcome_id
    [gone] = (await lot.patterns.CorrectOutcome(outcome_id=answer.outcome_id)).patterns
    assert gone.outcomes.usage_count == 0
    assert gone.outcomes.success_rate == pytest.approx(1.0)


async def test_what_cannot_be_corrected_says_why(lot):
    await saved(lot, pattern_id="p")
    missing = await failure(lot.patterns.CorrectOutcome(outcome_id="o-none"))
    assert (missing.code, missing.reason) == ("NOT_FOUND", "OUTCOME_NOT_FOUND")
    wrong = (await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS)).outcome_id
    first = await lot.patterns.CorrectOutcome(outcome_id=wrong, request_id="r")
    assert await lot.patterns.CorrectOutcome(outcome_id=wrong, request_id="r") == first
    again = await failure(lot.patterns.CorrectOutcome(outcome_id=wrong))
    assert (again.code, again.reason) == ("FAILED_PRECONDITION", "OUTCOME_CORRECTED")
    assert again.metadata == {"outcome_id": wrong, "corrected_by_outcome_id": first.outcome_id}
    unknown = await failure(lot.patterns.ListOutcomes(pattern_id="none"))
    assert unknown.reason == "PATTERN_NOT_FOUND"


async def two_near_ties(lot) -> None:
    for name in ("1", "2"):
        await saved(lot, f"{QUERY} {name}", pattern_id=name)


async def ids(lot, **requested) -> list[str]:
    answer = await lot.patterns.RecallPatterns(query=f"{QUERY} 1", **requested)
    return [hit.pattern.pattern_id for hit in answer.hits]


async def test_what_worked_on_a_query_comes_first_for_it_and_the_answer_says_why(lot):
    await two_near_ties(lot)
    assert await ids(lot) == ["1", "2"]
    found = await lot.patterns.RecallPatterns(query=f"{QUERY} 1")
    for _ in range(3):
        await lot.patterns.RecordOutcome(
            pattern_ids=["2"], outcome=SUCCESS, retrieval_id=found.retrieval_id
        )
    await lot.patterns.RecordOutcome(pattern_ids=["1"], outcome=FAILURE, query=f"{QUERY} 1")
    balanced = await lot.patterns.RecallPatterns(query=f"{QUERY} 1", explain=True)
    best = balanced.hits[0]
    assert best.pattern.pattern_id == "2"
    [learned] = best.outcome_evidence
    assert learned.query == f"{QUERY} 1"
    # A real model's vectors are of 32 bits.
    assert learned.weight == pytest.approx(1.0, abs=1e-5)
    assert learned.success_count == learned.trial_count
    assert learned.trial_count == pytest.approx(2.7949, abs=1e-4)  # 1 + .93 + .8649
    assert learned.last_time.seconds > 0
    total = sum(part.value * part.weight for part in best.score_parts)
    assert best.score == pytest.approx(total)
    told = balanced.explanation
    assert told.kernel_width == pytest.approx(0.06)
    assert told.decay == pytest.approx(0.93)
    assert told.half_life.ToTimedelta() == timedelta(days=180)
    assert await ids(lot, ranking=outcome_pb2.RANKING_RELEVANCE) == ["1", "2"]
    assert await ids(lot, ranking=outcome_pb2.RANKING_RELIABLE) == ["2", "1"]
    assert not any(hit.outcome_evidence for hit in found.hits)


async def test_explore_is_reproducible_by_its_seed_and_says_which_it_took(lot):
    await two_near_ties(lot)
    for name in ("1", "2"):
        await lot.patterns.RecordOutcome(pattern_ids=[name], outcome=PARTIAL, query=f"{QUERY} 1")
    explore = outcome_pb2.RANKING_EXPLORE
    orders = set()
    for seed in range(60):
        order = await ids(lot, ranking=explore, seed=seed)
        assert await ids(lot, ranking=explore, seed=seed) == order
        orders.add(tuple(order))
    assert len(orders) == 2
    free = await lot.patterns.RecallPatterns(query=QUERY, ranking=explore, explain=True)
    assert free.explanation.HasField("seed")
    plain = await lot.patterns.RecallPatterns(query=QUERY, explain=True)
    assert not plain.explanation.HasField("seed")


async def test_an_explanation_counts_what_each_filter_keeps_out(lot):
    await two_near_ties(lot)
    await saved(lot, "water the plants", pattern_id="go", language="go")
    answer = await lot.patterns.RecallPatterns(
        query=QUERY,
        filter={"languages": ["go"], "min_usage_count": 1},
        explain=True,
    )
    counts = {one.field: one.excluded_count for one in answer.explanation.filters}
    assert counts == {"languages": 2, "min_usage_count": 3, "superseded": 0, "reviews": 0}
    assert answer.explanation.matching_count == 0
