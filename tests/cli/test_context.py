"""`lot-grpc context` against a server that answers as it is told."""

from __future__ import annotations

import json

import grpc
import pytest
from google.protobuf.json_format import ParseDict

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb
from tests.cli.patterns import COLOURS
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import ran, steering

TEXT = "# Task\n\n- [ ] [bold]do[/bold] :smile: 漢字\n\n```go\nfunc f() {\n\treturn\n}\n```\n"


def know(fake, **fields) -> None:
    fake.changes.known = pb.GetTaskContextResponse(**fields)


def test_the_text_is_printed_as_it_is(runner, fake):
    know(fake, prompt_text=TEXT, prompt_token_count=40)
    result = ran(runner, fake, "context", "x", COLUMNS=20)
    assert (result.exit_code, result.stdout, result.stderr) == (0, TEXT, "")
    know(fake, prompt_text="one line")
    assert ran(runner, fake, "context", "x").stdout == "one line\n"


def test_nothing_of_it_steers_a_terminal_but_programs_get_all(runner, fake):
    know(fake, prompt_text=NASTY, notices=[outcome_pb2.Notice(message=NASTY)])
    shown = ran(runner, fake, "context", "x", **COLOURS)
    assert steering(shown.output.replace("\x1b[33mnote: \x1b[0m", "")) == []
    assert "\\x1b]0;owned\\x07\\x1b[31mred\\u202egnp\\x9b2J\nnext" in shown.stdout
    assert ran(runner, fake, "context", "x").stdout == f"{NASTY}\n"


def test_what_is_asked_goes_to_the_server(runner, fake):
    result = ran(
        runner, fake, "context", "do it", "--category", "a", "--task-type", "b", "--language",
        "py", "--preferences", "c", "--preferences", "d", "--limit", "9", "--max-tokens", "100",
        "--min-similarity", "0", "--min-match", "0", "-n", "team",
    )  # fmt: skip
    assert result.exit_code == 0, result
    assert ran(runner, fake, "context", "--task-id", "t-1").exit_code == 0
    assert fake.changes.tasks == [
        pb.GetTaskContextRequest(
            namespace="team", task="do it", category="a", task_type="b", language="py",
            preference_categories=["c", "d"], limit=9, max_tokens=100, min_similarity=0,
            min_match=0,
        ),
        pb.GetTaskContextRequest(task_id="t-1"),
    ]  # fmt: skip


CUT = {"prompt_text": "x", "truncated": True, "prompt_token_count": 1234}


@pytest.mark.parametrize(
    ("fields", "options", "said"),
    [
        ({}, [], "nothing is known about a task like this"),
        (
            {"truncated": True},
            ["--max-tokens", "1"],
            "nothing fits into so few tokens; raise --max-tokens",
        ),
        (
            CUT,
            ["--max-tokens", "1300"],
            "parts were shortened or omitted (1,234 tokens); raise --max-tokens for more; --json "
            "shows everything",
        ),
        (CUT, [], "parts were shortened or omitted (1,234 tokens); --json shows everything"),
    ],
)
def test_what_is_missing_is_said_on_stderr_only(runner, fake, fields, options, said):
    know(fake, **fields)
    result = ran(runner, fake, "context", "x", *options)
    assert result.exit_code == 0
    assert result.stdout == ("x\n" if "prompt_text" in fields else "")
    assert result.stderr == f"note: {said}\n"


def test_json_is_the_whole_answer_on_one_line(runner, fake):
    know(fake, prompt_text=NASTY, retrieval_id="r-1", truncated=True)
    result = ran(runner, fake, "context", "x", "--json")
    [line] = result.stdout.splitlines()
    assert ParseDict(json.loads(line), pb.GetTaskContextResponse()) == fake.changes.known
    assert steering(line) == []
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [[], [" "], ["x", "--task-id", "t"]])
def test_wrong_usage_exits_2_and_asks_nothing(runner, fake, arguments):
    result = ran(runner, fake, "context", *arguments, COLUMNS=200)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "give either TASK or --task-id" in result.stderr
    assert fake.changes.tasks == []


def test_a_refusal_is_told_in_the_words_of_the_server(runner, fake):
    fake.changes.refuses = (grpc.StatusCode.NOT_FOUND, "EPISODE_NOT_FOUND", "no episode of t-1")
    result = ran(runner, fake, "context", "--task-id", "t-1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: {fake.address}: NOT_FOUND EPISODE_NOT_FOUND: no episode of t-1\n"
    )
