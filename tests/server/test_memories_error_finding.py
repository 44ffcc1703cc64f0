"""Finding error solutions and saying whether they helped, on the wire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.service import Lot
from tests.server.wire import failure

EXACT, SIMILAR = pb.ERROR_MATCH_EXACT_SIGNATURE, pb.ERROR_MATCH_SIMILAR
YAML, PIL = "No module named 'yaml'", "No module named 'PIL'"


async def saved(lot: Lot, message: str, solution_id: str, **named: Any) -> Any:
    given = {"error_message": message, "resolution": f"the fix of {solution_id}", **named}
    answer = await lot.memories.SaveErrorSolution(
        error_solution=given, error_solution_id=solution_id
    )
    return answer.error_solution


async def two_modules(lot: Lot) -> None:
    for name, message in (("yaml", YAML), ("pil", PIL)):
        await saved(lot, message, name, error_type="ModuleNotFoundError", language="python")
    await saved(lot, "cannot import name 'x' from 'yaml'", "import", error_type="ImportError")


async def helped(lot: Lot, solution_id: str, outcome: Any = None, **named: Any) -> Any:
    answer = await lot.memories.RecordErrorSolutionOutcome(
        error_solution_id=solution_id, outcome=outcome or outcome_pb2.OUTCOME_SUCCESS, **named
    )
    return answer.error_solution


def ids(hits: Any) -> list[str]:
    return [hit.error_solution.error_solution_id for hit in hits]


async def test_the_same_error_comes_first_another_name_is_told_and_then_similar_ones(lot):
    await two_modules(lot)
    answer = await lot.memories.FindErrorSolutions(error_message=f"ModuleNotFoundError: {YAML}")
    assert ids(answer.hits) == ["yaml", "pil", "import"]
    assert [hit.match for hit in answer.hits] == [EXACT, EXACT, SIMILAR]
    same, other, similar = answer.hits
    assert not same.differences
    [told] = other.differences
    assert (told.part, told.given, told.stored) == ("name", "yaml", "PIL")
    assert same.score > 0.9 > 0.42 > other.score
    assert similar.score > 0
    assert answer.signature == "ModuleNotFoundError: No module named '<name>'"
    assert answer.retrieval_id
    assert not answer.notices
    assert not answer.unsolved
    assert not same.score_parts


async def test_explain_says_what_adds_up_to_the_score(lot):
    await two_modules(lot)
    await helped(lot, "yaml")
    answer = await lot.memories.FindErrorSolutions(
        error_message=YAML, error_type="ModuleNotFoundError", explain=True
    )
    assert ids(answer.hits) == ["yaml", "pil"]
    for hit in answer.hits:
        parts = {part.name: part for part in hit.score_parts}
        assert set(parts) == {"similarity", "agreement", "reliability"}
        total = sum(part.value * part.weight for part in parts.values())
        assert hit.score == pytest.approx(total)
        assert parts["reliability"].value == hit.error_solution.outcomes.reliability
    assert answer.hits[0].error_solution.outcomes.reliability > 0
    answer = await lot.memories.FindErrorSolutions(
        error_message="an import went wrong", explain=True
    )
    names = {part.name for part in answer.hits[0].score_parts}
    assert "reliability" in names
    assert "agreement" not in names


async def test_what_did_not_help_comes_back_apart_and_of_similar_errors_when_asked_for(lot):
    await saved(lot, "KeyError: 'a'", "works")
    await saved(lot, "KeyError: 'b'", "vain", worked=False)
    await saved(lot, "KeyError happens in the settings", "near-vain", worked=False)
    answer = await lot.memories.FindErrorSolutions(error_message="KeyError: 'c'")
    assert (ids(answer.hits), ids(answer.unsolved)) == (["works"], ["vain"])
    assert not answer.unsolved[0].error_solution.worked
    assert answer.unsolved[0].match == EXACT
    answer = await lot.memories.FindErrorSolutions(
        error_message="KeyError: 'c'", include_unsolved=True
    )
    assert (ids(answer.hits), ids(answer.unsolved)) == (["works"], ["vain", "near-vain"])
    assert answer.unsolved[1].match == SIMILAR


async def test_filters_hold_before_the_cut(lot):
    for n in range(8):
        await saved(lot, "the port 80 is taken", f"other-{n}", language="go", error_type="X")
    await saved(lot, "the port is taken by another", "mine", language="python", categories=["a"])
    requested = {"error_message": "the port 80 is taken", "limit": 1}
    for narrowed in ({"language": "py"}, {"categories": ["b", "a"]}, {"error_type": "Y"}):
        answer = await lot.memories.FindErrorSolutions(**requested, **narrowed)
        assert ids(answer.hits) == ["mine"], narrowed
    assert len((await lot.memories.FindErrorSolutions(**requested)).hits) == 1
    answer = await lot.memories.FindErrorSolutions(error_message="the port 80 is taken")
    assert len(answer.hits) == 3
    answer = await lot.memories.FindErrorSolutions(error_message="nothing", language="rust")
    assert not answer.hits


async def test_min_similarity_bounds_similar_ones_only(lot):
    await saved(lot, "E: the disk of /a/b is full", "same")
    await saved(lot, "the disk is rather full", "near")
    requested = {"error_message": "E: the disk of /some/where/else is full"}
    assert ids((await lot.memories.FindErrorSolutions(**requested)).hits) == ["same", "near"]
    answer = await lot.memories.FindErrorSolutions(**requested, min_similarity=0.99)
    assert ids(answer.hits) == ["same"]


async def test_a_type_alone_finds_its_solutions(lot):
    await saved(lot, "TimeoutError", "alone", error_type="TimeoutError")
    await saved(lot, "TimeoutError: after 3 s", "more", error_type="TimeoutError")
    answer = await lot.memories.FindErrorSolutions(error_type="TimeoutError")
    assert ids(answer.hits) == ["alone", "more"]
    assert [hit.match for hit in answer.hits] == [EXACT, SIMILAR]


async def test_an_error_without_a_word_is_answered_and_says_so(lot):
    await saved(lot, "KeyError: 'a'", "s")
    answer = await lot.memories.FindErrorSolutions(error_message=" ")
    assert not answer.hits
    [notice] = answer.notices
    assert (notice.code, notice.field) == (
        outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE, "error_message",
    )  # fmt: skip


async def test_a_trace_too_long_is_refused_and_told_what_to_send(lot):
    frame = "  File '/app/main.py', line 1, in f\n"
    trace = frame * (2**20 // len(frame))
    failed = await failure(lot.memories.FindErrorSolutions(error_message=trace))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert failed.fields == {"error_message": "error_message.max_bytes"}
    assert "the last 64 KiB" in failed.message
    failed = await failure(saved(lot, trace, "s"))
    assert failed.fields == {"error_solution.error_message": "error_message.max_bytes"}
    assert "the last 64 KiB" in failed.message
    tail = (trace + "OSError: disk full")[-65_536:]
    await saved(lot, "OSError: disk full", "s")
    answer = await lot.memories.FindErrorSolutions(error_message=tail)
    assert ids(answer.hits) == ["s"]
    failed = await failure(lot.memories.FindErrorSolutions(error_message="é" * 32_769))
    assert failed.fields == {"error_message": "error_message.max_bytes"}
    assert (await lot.memories.FindErrorSolutions(error_message="é " * 21_845)).notices


async def test_an_expired_solution_is_not_found_and_takes_no_outcome(lot):
    clock = lot.clock
    await saved(lot, "KeyError: 'a'", "s", ttl=timedelta(seconds=10))
    assert ids((await lot.memories.FindErrorSolutions(error_message="KeyError: 'a'")).hits) == ["s"]
    clock.advance(10)
    assert not (await lot.memories.FindErrorSolutions(error_message="KeyError: 'a'")).hits
    failed = await failure(helped(lot, "s"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "ERROR_SOLUTION_NOT_FOUND")
    failed = await failure(lot.memories.DeleteErrorSolution(error_solution_id="s"))
    assert failed.reason == "ERROR_SOLUTION_NOT_FOUND"


async def test_outcomes_count_and_order_what_is_all_but_the_same(lot):
    for name in ("older", "newer"):
        await saved(lot, "KeyError: 'a'", name)
    requested = {"error_message": "KeyError: 'a'"}
    assert ids((await lot.memories.FindErrorSolutions(**requested)).hits) == ["newer", "older"]
    answer = await lot.memories.FindErrorSolutions(**requested)
    solution = await helped(lot, "older", retrieval_id=answer.retrieval_id)
    solution = await helped(
        lot, "older", outcome_pb2.OUTCOME_PARTIAL, duration=timedelta(seconds=3), reward=0.5
    )
    solution = await helped(lot, "older", outcome_pb2.OUTCOME_FAILURE, note="it came back")
    counts = solution.outcomes
    assert (counts.success_count, counts.partial_count, counts.failure_count) == (1, 1, 1)
    assert counts.success_rate == pytest.approx(0.7 * (0.7 * 1.0 + 0.3 * 0.5))
    assert counts.average_duration.seconds == 3
    assert solution.update_time == solution.create_time
    assert ids((await lot.memories.FindErrorSolutions(**requested)).hits) == ["older", "newer"]


async def test_an_outcome_by_request_counts_once(lot):
    await saved(lot, "KeyError: 'a'", "s")
    for _ in range(2):
        assert (await helped(lot, "s", request_id="r")).outcomes.usage_count == 1
    failed = await failure(helped(lot, "s", outcome_pb2.OUTCOME_FAILURE, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")


async def test_an_outcome_of_an_unknown_find_is_refused_unless_the_error_is_told(lot):
    await saved(lot, "KeyError: 'a'", "s")
    unknown = {"error_solution_id": "s", "outcome": outcome_pb2.OUTCOME_SUCCESS}
    failed = await failure(
        lot.memories.RecordErrorSolutionOutcome(**unknown, retrieval_id="r-none")
    )
    assert (failed.code, failed.reason) == ("NOT_FOUND", "RETRIEVAL_NOT_FOUND")
    assert "send error_message" in failed.message
    solution = await helped(lot, "s", retrieval_id="r-none", error_message="KeyError: 'b'")
    assert solution.outcomes.usage_count == 1


async def test_another_namespace_finds_and_counts_nothing(lot):
    await saved(lot, "KeyError: 'a'", "s", worked=False)
    other = lot.on(f"{lot.namespace}-other")
    answer = await other.memories.FindErrorSolutions(error_message="KeyError: 'a'")
    assert not answer.hits
    assert not answer.unsolved
    assert (await failure(helped(other, "s"))).reason == "ERROR_SOLUTION_NOT_FOUND"
