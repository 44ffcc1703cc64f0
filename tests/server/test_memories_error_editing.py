"""Reading and editing error solutions on the wire."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import error_solution_pb2, outcome_pb2
from tests.server.service import Lot
from tests.server.test_memories_errors import FULL, saved
from tests.server.wire import failure


async def edited(
    lot: Lot, solution_id: str = "s", paths: Any = (), etag: str = "", **fields: Any
) -> Any:
    return await lot.memories.UpdateErrorSolution(
        error_solution_id=solution_id,
        error_solution=fields,
        update_mask={"paths": paths},
        etag=etag,
    )


async def gotten(lot: Lot, solution_id: str = "s") -> Any:
    answer = await lot.memories.GetErrorSolution(error_solution_id=solution_id)
    return answer.error_solution


async def test_one_is_read_by_its_id_where_it_is(lot):
    made = await lot.memories.SaveErrorSolution(error_solution=FULL, error_solution_id="s")
    assert await gotten(lot) == made.error_solution
    there = lot.on(f"{lot.namespace}-other").memories
    for call in (
        there.GetErrorSolution(error_solution_id="s"),
        there.UpdateErrorSolution(error_solution_id="s", error_solution={"context": "x"}),
    ):
        assert (await failure(call)).reason == "ERROR_SOLUTION_NOT_FOUND"
    failed = await failure(gotten(lot, "none"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "ERROR_SOLUTION_NOT_FOUND")


async def test_every_field_can_be_edited_and_the_signature_follows(lot):
    made = (await saved(lot, error_solution_id="s")).error_solution
    lot.clock.advance(1)
    answer = await edited(lot, "s", ["*"], **FULL)
    now = answer.error_solution
    assert now == await gotten(lot)
    fields = FULL.keys() - {"origin"}  # an edit does not raise it
    assert {name: getattr(now, name) for name in fields} == {
        name: getattr(error_solution_pb2.ErrorSolution(**FULL), name) for name in fields
    }
    assert now.create_time == made.create_time
    assert now.update_time.seconds == made.update_time.seconds + 1
    assert now.etag != made.etag


async def test_an_edit_sets_what_it_names_and_leaves_the_rest(lot):
    await lot.memories.SaveErrorSolution(error_solution=FULL, error_solution_id="s")
    before = await gotten(lot)
    named = (await edited(lot, "s", ["steps", "labels"], resolution="ignored")).error_solution
    assert not named.steps
    assert not named.labels
    assert named.resolution == before.resolution
    populated = (await edited(lot, context="elsewhere")).error_solution
    assert (populated.context, populated.resolution) == ("elsewhere", before.resolution)
    same = (await edited(lot, context="elsewhere")).error_solution
    assert same == populated
    with_end = (await edited(lot, "s", ["ttl"], ttl=timedelta(seconds=10))).error_solution
    assert with_end.HasField("expire_time")
    assert not (await edited(lot, "s", ["expiration"])).error_solution.HasField("expire_time")


@pytest.mark.parametrize(
    ("paths", "fields", "field", "rule"),
    [
        (["signature"], {}, "update_mask", "update_mask.path"),
        (["etag"], {}, "update_mask", "update_mask.path"),
        (["nothing"], {}, "update_mask", "update_mask.path"),
        (["error_message"], {}, "error_solution.error_message", "required"),
        (
            ["resolution", "steps"], {}, "error_solution", "error_solution.resolution.required"
        ),
        ([], {"error_solution_id": "t"}, "error_solution.error_solution_id",
         "error_solution_id.beside"),
    ],
)  # fmt: skip
async def test_what_cannot_be_set_is_refused(lot, paths, fields, field, rule):
    await lot.memories.SaveErrorSolution(error_solution=FULL, error_solution_id="s")
    failed = await failure(edited(lot, "s", paths, **fields))
    assert (failed.code, failed.fields) == ("INVALID_ARGUMENT", {field: rule})


async def test_an_edit_and_a_delete_keep_to_their_etag(lot):
    old = (await saved(lot, error_solution_id="s")).error_solution.etag
    new = (await edited(lot, etag=old, context="x")).error_solution.etag
    failed = await failure(edited(lot, etag=old, context="y"))
    assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
    failed = await failure(lot.memories.DeleteErrorSolution(error_solution_id="s", etag=old))
    assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
    await lot.memories.RecordErrorSolutionOutcome(error_solution_id="s", outcome=1)
    assert (await lot.memories.DeleteErrorSolution(error_solution_id="s", etag=new)).deleted
    failed = await failure(edited(lot, context="z"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "ERROR_SOLUTION_NOT_FOUND")


async def test_an_edited_error_is_found_by_what_it_says_now(lot):
    await saved(lot, "KeyError: 'a'", error_solution_id="s")
    found = await lot.memories.FindErrorSolutions(error_message="KeyError: 'b'")
    assert [one.match for one in found.hits] == [error_solution_pb2.ERROR_MATCH_EXACT_SIGNATURE]
    await edited(lot, error_message="ImportError: cannot import name 'x' from 'y'")
    found = await lot.memories.FindErrorSolutions(error_message="KeyError: 'b'")
    assert [one.match for one in found.hits] != [error_solution_pb2.ERROR_MATCH_EXACT_SIGNATURE]
    found = await lot.memories.FindErrorSolutions(
        error_message="ImportError: cannot import name 'x' from 'z'"
    )
    [hit] = found.hits
    assert hit.match == error_solution_pb2.ERROR_MATCH_EXACT_SIGNATURE
    assert [(one.given, one.stored) for one in hit.differences] == [("z", "y")]
    await edited(lot, error_message="ImportError: cannot import name 'x' from 'z'")
    found = await lot.memories.FindErrorSolutions(
        error_message="ImportError: cannot import name 'x' from 'z'"
    )
    assert not found.hits[0].differences


async def test_outcomes_stay_and_a_first_rate_follows_worked(lot):
    await saved(lot, error_solution_id="s", worked=False, resolution="")
    solved = await edited(lot, worked=True, resolution="use get")
    assert solved.error_solution.outcomes.success_rate == 1.0
    outcome = outcome_pb2.OUTCOME_FAILURE
    await lot.memories.RecordErrorSolutionOutcome(error_solution_id="s", outcome=outcome)
    counted = (await gotten(lot)).outcomes
    assert (await edited(lot, worked=False)).error_solution.outcomes == counted
    await saved(lot, "other", error_solution_id="given", initial_success_rate=0.3)
    unsolved = await edited(lot, "given", worked=False)
    assert unsolved.error_solution.outcomes.success_rate == pytest.approx(0.3)


async def test_an_edited_solution_counts_as_what_it_says_now(lot):
    first = (await saved(lot)).error_solution
    await edited(lot, first.error_solution_id, resolution="use a default dict")
    again = await saved(lot, resolution="use a default dict")
    assert not again.created
    assert again.error_solution.error_solution_id == first.error_solution_id
    other = await saved(lot, request_id="r")
    assert other.created
    assert other.error_solution.resolution == "use get"
    assert other.error_solution.error_solution_id != first.error_solution_id
    assert await saved(lot, request_id="r") == other
    assert not (await saved(lot)).created


async def test_outcomes_and_edits_at_once_are_all_kept(lot):
    await saved(lot, error_solution_id="s")
    outcome = outcome_pb2.OUTCOME_SUCCESS
    record = lot.memories.RecordErrorSolutionOutcome
    edits = [edited(lot, **{name: "x"}) for name in ("context", "resolution", "language")]
    uses = [record(error_solution_id="s", outcome=outcome) for _ in range(5)]
    await asyncio.gather(*edits, *uses)
    now = await gotten(lot)
    assert (now.context, now.resolution, now.language) == ("x", "x", "x")
    assert now.outcomes.success_count == 5
