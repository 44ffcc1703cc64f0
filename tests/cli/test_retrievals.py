"""`lot-grpc retrievals` against a server that answers as it is told."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lot_grpc.cli.app import app as command_line
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import outcome_pb2, resource_kind_pb2
from lot_grpc.pb.lot.v1 import retrieval_pb2 as pb
from tests.cli.scripted import NASTY, masked, served
from tests.cli.test_episodes import rows_of, steering

PATTERN = resource_kind_pb2.RESOURCE_KIND_PATTERN
SUCCESS = outcome_pb2.OUTCOME_SUCCESS


def made(number: int, query: str = "deploy it") -> pb.Retrieval:
    one = pb.Retrieval(
        retrieval_id=f"r-{number}",
        method=pb.RETRIEVAL_METHOD_RECALL_PATTERNS,
        principal="planner",
        query=query,
        ranking=outcome_pb2.RANKING_BALANCED,
        limit=5,
    )
    one.create_time.FromDatetime(datetime(2026, 3, 1, 12, tzinfo=UTC))
    part = outcome_pb2.ScorePart(name="similarity", value=0.5, weight=1)
    shown = {"resource_kind": PATTERN, "similarity": 0.5, "score": 0.5, "etag": "abc"}
    one.items.add(id="p", outcome=SUCCESS, match_probability=0.25, score_parts=[part], **shown)
    one.items.add(id="q", **shown)
    used = [pb.UsedItem(resource_kind=PATTERN, id="p")]
    one.outcomes.add(outcome_id="o-1", outcome=SUCCESS, used=used, note="fine")
    return one


class Told(pb_grpc.LearningServiceServicer):
    """Serves what it holds."""

    def __init__(self) -> None:
        self.held = [made(2), made(1)]
        self.asked: list[pb.ListRetrievalsRequest] = []

    def ListRetrievals(self, request, context):
        self.asked.append(request)
        return pb.ListRetrievalsResponse(retrievals=masked(self.held, request))

    def GetRetrieval(self, request, context):
        return pb.GetRetrievalResponse(retrieval=self.held[0])


@pytest.fixture
def told():
    return Told()  # type: ignore[abstract]  # the rest is not asked


@pytest.fixture
def address(told):
    with served(pb_grpc.add_LearningServiceServicer_to_server, told) as address:
        yield address


def ran(runner, address, *arguments, **environment):
    return runner.invoke(
        command_line,
        ["retrievals", *arguments, "-a", address],
        env={"COLUMNS": "200", **{k: str(v) for k, v in environment.items()}},
    )


def test_a_row_for_each_says_what_was_used_and_how_it_went(runner, address, told):
    result = ran(runner, address)
    assert result.exit_code == 0, result
    head, first, second = (line for line in result.stdout.splitlines() if line.strip(" ─"))
    assert head.split() == ["id", "when", "method", "used", "outcome", "query"]
    assert first.split()[0] == "r-2"
    assert second.split()[-7:] == ["recall_patterns", "1", "of", "2", "success", "deploy", "it"]
    assert told.asked[0].page_size == 20


def test_every_option_narrows_the_list(runner, address, told):
    options = [
        *("--method", "get_task_context", "--kind", "memory", "--item", "m-1"),
        *("--after", "2026-03-01T12:00Z", "--before", "2026-03-02T12:00Z"),
        *("--outcome", "--no-holdout", "--limit", "3", "-n", "team", "--principal", "planner"),
    ]
    assert ran(runner, address, *options).exit_code == 0
    [asked] = told.asked
    assert (asked.namespace, asked.page_size) == ("team", 3)
    assert asked.filter.methods == [pb.RETRIEVAL_METHOD_GET_TASK_CONTEXT]
    assert asked.filter.item_kinds == [resource_kind_pb2.RESOURCE_KIND_MEMORY]
    assert asked.filter.item_id == "m-1"
    assert asked.filter.principal == "planner"
    assert asked.filter.has_outcome
    assert asked.filter.HasField("holdout")
    assert not asked.filter.holdout
    seconds = asked.filter.created_before.seconds - asked.filter.created_after.seconds
    assert seconds == 24 * 3600


def test_one_is_shown_with_its_items_their_scores_and_its_outcomes(runner, address):
    shown = ran(runner, address, "r-2").stdout
    rows = rows_of(shown)
    assert (rows["query"], rows["ranking"], rows["limit"]) == ("deploy it", "balanced", "5")
    assert rows["principal"] == "planner"
    table = [line.split() for line in shown.splitlines() if line.split()[:1] == ["pattern"]]
    assert table == [
        ["pattern", "0.50", "0.25", "success", "abc", "p"],
        ["pattern", "0.50", "abc", "q"],
    ]
    assert "p  score 0.500 = 0.500 similarity" in shown
    assert "fine" in shown
    assert "o-1" in shown


def test_json_has_every_field(runner, address, told):
    listed = ran(runner, address, "--json").stdout.splitlines()
    assert [json.loads(one)["retrieval_id"] for one in listed] == ["r-2", "r-1"]
    one = json.loads(ran(runner, address, "r-2", "--json").stdout)
    assert one["items"][0]["outcome"] == "OUTCOME_SUCCESS"
    assert not told.asked[0].read_mask.paths


def test_nothing_of_a_stored_text_steers_the_terminal(runner, address, told):
    told.held = [made(1, NASTY)]
    told.held[0].outcomes[0].note = NASTY
    for arguments in ([], ["r-1"]):
        assert not steering(ran(runner, address, *arguments).stdout)


@pytest.mark.parametrize("options", [["--item", "p"], ["--limit", "2"], ["--outcome"]])
def test_an_id_goes_with_no_option_of_the_list(runner, address, options):
    result = ran(runner, address, "r-1", *options)
    assert result.exit_code == 2
    assert "an ID cannot be combined with options that narrow the list" in result.stderr


def test_an_unknown_method_is_refused_with_those_there_are(runner, address):
    result = ran(runner, address, "--method", "x")
    assert result.exit_code == 2
    assert "recall_patterns" in result.stderr
