"""Error solutions on the wire: what each call answers, and each error that its comment names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import error_solution_pb2, outcome_pb2
from tests.server.service import Lot, output_only
from tests.server.wire import failure

GIVEN_BY_SERVER = (
    "error_solution_id", "signature", "outcomes", "namespace", "create_time", "update_time", "etag",
)  # fmt: skip
FULL: dict[str, Any] = {
    "error_type": "KeyError",
    "error_message": "KeyError: 'port'",
    "context": "reading the settings",
    "language": "python",
    "resolution": "give a default",
    "steps": ["find the key", "use dict.get"],
    "categories": ["backend"],
    "worked": True,
    "tags": ["dict"],
    "labels": {"team": "core"},
    "metadata": {"seen": 3.0},
    "source_episode_ids": ["e-1"],
    "pinned": True,
    "origin": {"kind": "ORIGIN_KIND_PERSON", "name": "alice"},
}


async def saved(lot: Lot, message: str = "KeyError: 'a'", **named: Any) -> Any:
    own = {"error_solution_id", "initial_success_rate", "request_id"}
    fields = {"error_message": message, "resolution": "use get"}
    fields |= {name: value for name, value in named.items() if name not in own}
    beside = {name: value for name, value in named.items() if name in own}
    return await lot.memories.SaveErrorSolution(error_solution=fields, **beside)


async def listed(lot: Lot, **requested: Any) -> list[str]:
    page = await lot.memories.ListErrorSolutions(filter=requested)
    return [one.error_solution_id for one in page.error_solutions]


async def test_a_solution_comes_back_as_it_was_given(lot):
    answer = await lot.memories.SaveErrorSolution(error_solution=FULL)
    assert answer.created
    assert not answer.notices
    solution = answer.error_solution
    given = error_solution_pb2.ErrorSolution(**FULL)
    assert output_only(solution, *GIVEN_BY_SERVER) == given
    assert solution.signature == "KeyError: '<name>'"
    assert solution.namespace == lot.namespace
    assert solution.create_time == solution.update_time
    assert (solution.outcomes.success_rate, solution.outcomes.usage_count) == (1.0, 0)
    [found] = (await lot.memories.ListErrorSolutions()).error_solutions
    assert found == solution


async def test_what_did_not_help_is_stored_as_such(lot):
    answer = await lot.memories.SaveErrorSolution(
        error_solution={"error_message": "e", "worked": False}
    )
    assert answer.error_solution.HasField("worked")
    assert not answer.error_solution.worked
    assert answer.error_solution.outcomes.success_rate == 0.0
    failed = await failure(lot.memories.SaveErrorSolution(error_solution={"error_message": "e"}))
    assert failed.fields == {"error_solution": "error_solution.resolution.required"}


async def test_the_same_solution_again_is_the_stored_one_and_says_what_it_keeps(lot):
    first = await saved(lot)
    again = await saved(lot, "2026-01-02T03:04:05Z KeyError: 'a'", context="elsewhere")
    assert not again.created
    assert again.error_solution == first.error_solution
    assert {(notice.code, notice.field) for notice in again.notices} == {
        (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "error_solution.error_message"),
        (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "error_solution.context"),
    }


@pytest.mark.parametrize(
    "other",
    ["KeyError: 'b'", "Error: Process completed with exit code 1.", "KeyError: 'a'\nKilled"],
)
async def test_another_error_with_the_same_fix_is_kept_beside_it(lot, other):
    await saved(lot)
    assert (await saved(lot, other)).created
    assert len(await listed(lot)) == 2


async def test_an_id_and_a_request_id_are_safe_to_repeat_and_refused_for_others(lot):
    first = await saved(lot, error_solution_id="s", request_id="r")
    assert await saved(lot, error_solution_id="s", request_id="r") == first
    failed = await failure(saved(lot, "other", error_solution_id="s"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "ERROR_SOLUTION_ID_IN_USE")
    assert failed.metadata == {"namespace": lot.namespace, "id": "s"}
    assert failed.details["ResourceInfo"].resource_type == "lot.v1.ErrorSolution"
    failed = await failure(saved(lot, "other", error_solution_id="s", request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")


async def test_a_retry_does_not_bring_back_what_was_deleted(lot):
    made = await saved(lot, request_id="r")
    solution_id = made.error_solution.error_solution_id
    assert (await lot.memories.DeleteErrorSolution(error_solution_id=solution_id)).deleted
    failed = await failure(saved(lot, request_id="r"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "ERROR_SOLUTION_NOT_FOUND")
    assert "deleted" in failed.message
    assert await listed(lot) == []


async def test_what_was_deleted_is_gone_and_its_id_is_free(lot):
    await saved(lot, error_solution_id="s")
    assert (await lot.memories.DeleteErrorSolution(error_solution_id="s")).deleted
    failed = await failure(lot.memories.DeleteErrorSolution(error_solution_id="s"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "ERROR_SOLUTION_NOT_FOUND")
    missing = await lot.memories.DeleteErrorSolution(error_solution_id="s", allow_missing=True)
    assert not missing.deleted
    assert (await saved(lot, "other", error_solution_id="s")).created


async def test_a_time_to_live_becomes_a_time_of_expiry(lot):
    clock = lot.clock
    solution = (await saved(lot, ttl=timedelta(seconds=10))).error_solution
    assert solution.expire_time.seconds - solution.create_time.seconds == 10
    clock.advance(10)
    assert await listed(lot) == []


async def test_a_long_message_is_stored_whole_and_its_unread_tail_is_told(lot):
    answer = await saved(lot, "word " * 9000)
    assert len(answer.error_solution.error_message) == 45_000
    [notice] = answer.notices
    assert (notice.code, notice.field) == (
        outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED,
        "error_solution.error_message",
    )


FILTERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"error_types": ["A", "B"]}, {"error_type": "B"}, {"error_type": "b"}),
    ({"languages": ["PY"]}, {"language": "python"}, {"language": "go"}),
    ({"categories": ["x", "y"]}, {"categories": ["y", "z"]}, {"categories": ["z"]}),
    ({"signatures": ["E: lost <number>"]}, {"message": "lost 5"}, {"message": "lost all"}),
    ({"worked": False}, {"worked": False}, {}),
    ({"worked": True}, {}, {"worked": False}),
    ({"tags_any": ["x", "y"]}, {"tags": ["y"]}, {"tags": ["z"]}),
    ({"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d"}}),
    ({"min_success_rate": 0.5}, {"initial_success_rate": 0.5}, {"initial_success_rate": 0.49}),
    ({"pinned": True}, {"pinned": True}, {}),
    ({"pinned": False}, {}, {"pinned": True}),
    ({"origins": [5]}, {"origin": {"kind": 5}}, {"origin": {"name": "a"}}),
]  # fmt: skip


@pytest.mark.parametrize(("requested", "inside", "outside"), FILTERS)
async def test_each_filter_lets_through_what_it_should_and_nothing_else(
    lot, requested, inside, outside
):
    typed = {"error_type": "E"} if "signatures" in requested else {}
    await saved(lot, **{"message": "e", **typed, **inside}, error_solution_id="in")
    await saved(lot, **{"message": "e", **typed, **outside}, error_solution_id="out")
    assert await listed(lot, **requested) == ["in"]
    assert await listed(lot) == ["out", "in"]
    assert await listed(lot, min_usage_count=1) == []


async def test_filters_by_time_of_creation_leave_their_bounds_out(lot):
    clock = lot.clock
    first = (await saved(lot, "one", error_solution_id="1")).error_solution
    clock.advance(1)
    await saved(lot, "two", error_solution_id="2")
    clock.advance(1)
    third = (await saved(lot, "three", error_solution_id="3")).error_solution
    assert await listed(lot, created_after=first.create_time) == ["3", "2"]
    assert await listed(lot, created_before=third.create_time) == ["2", "1"]


def test_every_field_of_the_filter_is_in_a_test_above():
    tried = {name for requested, _, _ in FILTERS for name in requested}
    tried |= {"created_after", "created_before", "min_usage_count"}
    tried |= {"reviews"}  # test_admin_reviews
    assert tried == set(error_solution_pb2.ErrorSolutionFilter.DESCRIPTOR.fields_by_name)


async def test_pages_go_on_where_they_ended_and_only_for_the_same_question(lot):
    for n in range(5):
        await saved(lot, f"error {'abcde'[n]}", error_solution_id=str(n))
    first = await lot.memories.ListErrorSolutions(page_size=3)
    rest = await lot.memories.ListErrorSolutions(page_size=3, page_token=first.next_page_token)
    found = [one.error_solution_id for one in (*first.error_solutions, *rest.error_solutions)]
    assert found == ["4", "3", "2", "1", "0"]
    assert not rest.next_page_token
    failed = await failure(
        lot.memories.ListErrorSolutions(filter={"worked": True}, page_token=first.next_page_token)
    )
    assert failed.reason == "PAGE_TOKEN_MISMATCH"


async def test_another_namespace_sees_and_changes_nothing(lot):
    await saved(lot, error_solution_id="s")
    other = lot.on(f"{lot.namespace}-other")
    assert await listed(other) == []
    failed = await failure(other.memories.DeleteErrorSolution(error_solution_id="s"))
    assert failed.reason == "ERROR_SOLUTION_NOT_FOUND"
    assert (await saved(other)).created
    assert await listed(lot) == ["s"]
