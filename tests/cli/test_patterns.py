"""`lot-grpc patterns` against a server that answers as it is told, and what fails."""

from __future__ import annotations

import json
import re

import grpc
import pytest
from google.protobuf.json_format import ParseDict

from lot_grpc.cli.pattern_texts import outcomes_text, rate_text
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import CODE_KINDS, OUTCOMES, PATTERN_KINDS, PATTERN_TYPES, RANKINGS
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from tests.cli.patterns import COLOURS, START, outcomes, pattern, table_of
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import ran, rows_of

# --- patterns ---------------------------------------------------------------------------------


def test_patterns_are_listed_with_all_columns(runner, fake):
    fake.patterns.patterns = [
        pattern(2, outcomes(1234, 1000, 0.9), language="go", task="a\nb"),
        pattern(1),
    ]
    result = ran(runner, fake, "patterns")
    assert (result.exit_code, result.stderr) == (0, "")
    head, second, first = table_of(result.stdout)
    assert head.split() == ["id", "kind", "rate", "used", "created", "language", "task"]
    created = local_time(pattern(1).create_time).split()
    assert second.split() == ["p-2", "task", "0.90", "1,234", *created, "go", "a", "b"]
    assert first.split() == ["p-1", "task", "1.00", "not", "used", "yet", *created, "t"]
    [request] = fake.patterns.requests
    assert (request.page_size, request.filter) == (20, pb.PatternFilter())


@pytest.mark.parametrize(
    ("options", "count"), [(["--limit", "10"], 10), (["--all"], 45), ([], 20), (["-l", "45"], 45)]
)
def test_pages_are_read_up_to_the_limit(runner, fake, options, count):
    fake.patterns.patterns = [pattern(n) for n in range(45)]
    fake.patterns.page = 4
    result = ran(runner, fake, "patterns", "--json", *options)
    ids = [json.loads(line)["pattern_id"] for line in result.stdout.splitlines()]
    assert ids == [f"p-{n}" for n in range(count)]
    shown = ran(runner, fake, "patterns", *options)
    more = f"there are more than these {count}: --limit N shows N, --all shows all"
    assert (more in shown.stderr) == (count < 45)


def test_without_patterns_it_says_so(runner, fake):
    assert ran(runner, fake, "patterns").stdout == "There are no patterns.\n"
    narrowed = ran(runner, fake, "patterns", "--kind", "code")
    assert (narrowed.exit_code, narrowed.stdout) == (0, "No patterns match.\n")
    assert ran(runner, fake, "patterns", "--json").stdout == ""


def full() -> pb.Pattern:
    action = pb.Action(tool="bash", note="first")
    action.args.update({"cmd": "ls", "n": 2})
    one = pattern(
        1, outcomes(12, 9, 0.81), kind=pb.PATTERN_KIND_CODE, code_kind=pb.CODE_KIND_ASYNC,
        task="line one\nline two", language="python", code="def f():\n\treturn 'x'\n",
        actions=[action, pb.Action(tool="done")], confidence=0.625, pinned=True,
        tags=["a", "b"], labels={"team": "x"}, category="backend", superseded_by="p-9",
    )  # fmt: skip
    one.outcomes.partial_count, one.outcomes.failure_count = 1, 2
    one.outcomes.average_duration.FromSeconds(75)
    one.feedback.feedback_count, one.feedback.helpful_count = 3, 2
    one.feedback.unhelpful_count = 1
    return one


def test_one_is_shown_in_full_with_code_and_outcomes(runner, fake):
    fake.patterns.patterns = [full()]
    entries = [
        service_pb.OutcomeEntry(
            outcome_id="o-3",
            outcome=outcome_pb2.OUTCOME_FAILURE,
            corrects_outcome_id="o-2",
            note="late",
        ),
        service_pb.OutcomeEntry(
            outcome_id="o-2",
            outcome=outcome_pb2.OUTCOME_SUCCESS,
            query="do it",
            corrected_by_outcome_id="o-3",
        ),
        service_pb.OutcomeEntry(
            outcome_id="o-1", outcome=outcome_pb2.OUTCOME_SUCCESS, from_repeated_save=True
        ),
        service_pb.OutcomeEntry(outcome_id="o-0", corrects_outcome_id="o-9"),
    ]
    entries[0].duration.FromSeconds(90)
    for entry in entries:
        entry.create_time.FromDatetime(START)
    fake.patterns.outcomes = entries
    result = ran(runner, fake, "patterns", "p-1")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = rows_of(result.stdout)
    assert rows["id"] == "p-1"
    assert rows["kind"] == "code: async"
    assert rows["pattern type"] == "success"
    assert rows["outcomes"] == (
        "9 of 12 worked, 1 in part, 2 failed; rate 0.81; reliability 0.25; 1 min 15 s on average"
    )
    assert rows["confidence"] == "0.62 after 3 ratings: 2 helpful, 1 unhelpful"
    assert rows["task"] == "line one"
    assert rows["actions"] == '1. bash {"cmd":"ls","n":2} (first)'
    assert "2. done" in result.stdout
    assert rows["labels"] == "team=x"
    assert rows["superseded by"] == "p-9"
    assert "approach" not in rows
    assert "\ndef f():\n    return 'x'\n" in result.stdout
    when = local_time(entries[0].create_time)
    assert [line.split(when)[1].split() for line in result.stdout.splitlines()[-5:-1]] == [
        ["failure", "instead", "1", "min", "30", "s", "o-3", "corrects", "o-2;", "late"],
        ["success", "corrected", "o-2", "do", "it"],
        ["success", "o-1", "saved", "again"],
        ["nothing", "instead", "o-0", "corrects", "o-9"],
    ]


def test_outcomes_of_one_are_read_up_to_the_limit(runner, fake):
    fake.patterns.patterns = [pattern(1)]
    fake.patterns.outcomes = [service_pb.OutcomeEntry(outcome_id=f"o-{n}") for n in range(25)]
    fake.patterns.page = 4

    def shown(*options: str) -> tuple[int, bool]:
        result = ran(runner, fake, "patterns", "p-1", *options)
        return len(re.findall(r"\bo-\d", result.stdout)), "the last" in result.stderr

    assert shown() == (10, True)
    assert shown("--limit", "3") == (3, True)
    assert shown("--all") == (25, False)
    assert shown("--limit", "25") == (25, False)


def test_code_is_coloured_on_a_terminal_and_plain_elsewhere(runner, fake):
    long = f"x = '{'a' * 300}'"
    fake.patterns.patterns = [pattern(1, language="python", code=f"def f(): pass\n{long}\n")]
    piped = ran(runner, fake, "patterns", "p-1").stdout
    assert "\x1b" not in piped
    assert piped.endswith(f"\ndef f(): pass\n{long}\n")  # no line is broken
    terminal = ran(runner, fake, "patterns", "p-1", **COLOURS).stdout
    assert re.search(r"\x1b\[[\d;]*mdef\x1b", terminal)
    plain = ran(runner, fake, "patterns", "p-1", NO_COLOR="1", **COLOURS).stdout
    assert "def f(): pass" in plain
    assert not re.search(r"\x1b\[3\d", plain)


@pytest.mark.parametrize("language", ["", "klingon", NASTY])
def test_code_of_any_language_is_shown(runner, fake, language):
    fake.patterns.patterns = [pattern(1, language=language, code="x = 1\n")]
    result = ran(runner, fake, "patterns", "p-1", **COLOURS)
    assert result.exit_code == 0, result
    assert "x = 1" in result.stdout


def test_very_long_code_is_shown_without_colours(runner, fake):
    fake.patterns.patterns = [pattern(1, language="python", code="def f(): pass\n" * 5000)]
    shown = ran(runner, fake, "patterns", "p-1", **COLOURS).stdout
    assert shown.count("def f(): pass") == 5000


def test_one_as_json_is_the_pattern(runner, fake):
    fake.patterns.patterns = [full()]
    [line] = ran(runner, fake, "patterns", "p-1", "--json").stdout.splitlines()
    assert ParseDict(json.loads(line), pb.Pattern()) == full()


# --- what cannot be meant, and what fails -----------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["recall", " "], "TEXT must not be empty"),
        (["recall", "x", "--kind", "lost"], "task, code, learned, distilled"),
        (
            ["recall", "x", "--ranking", "best"],
            "reliable, explore, relevance",
        ),
        (["recall", "x", "--limit", "101"], "--limit"),
        (["recall", "x", "--min-success-rate", "1.1"], "--min-success-rate"),
        (["recall"], "TEXT"),
        (["patterns", "p-1", "--language", "go"], "an ID only goes with --limit or --all"),
        (["patterns", "--limit", "3", "--all"], "mutually exclusive"),
        (["stats", "--kind", "lost"], "task, code, learned, distilled"),
    ],
)
def test_wrong_usage_exits_2_and_asks_nothing(runner, fake, arguments, told):
    result = ran(runner, fake, *arguments, COLUMNS=200)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""
    assert fake.patterns.requests == []


@pytest.mark.parametrize("arguments", [["recall", "x"], ["patterns"], ["patterns", "p"], ["stats"]])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_refusal_is_told_in_the_words_of_the_server(runner, fake, arguments, options):
    fake.patterns.refuses = (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID", "say it so")
    result = ran(runner, fake, *arguments, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: {fake.address}: INVALID_ARGUMENT REQUEST_INVALID: say it so\n"
    )


def test_a_pattern_that_is_not_there_exits_1(runner, fake):
    result = ran(runner, fake, "patterns", "p-9")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "NOT_FOUND PATTERN_NOT_FOUND: there is no pattern p-9\\x1b[2J\n" in result.stderr


# --- words ------------------------------------------------------------------------------------


def test_a_rate_that_was_never_tried_says_so():
    assert outcomes_text(outcomes(rate=0.5)) == "not used yet; saved with rate 0.50"
    assert outcomes_text(outcomes(2, 2)) == "2 of 2 worked; rate 1.00; reliability 0.25"
    assert [str(rate_text(outcomes(1, 1, rate)).style) for rate in (0.8, 0.79, 0.5, 0.49)] == [
        "green",
        "yellow",
        "yellow",
        "red",
    ]


def test_every_value_of_the_contract_has_a_word():
    for words, kind in (
        (PATTERN_KINDS, pb.PatternKind),
        (PATTERN_TYPES, pb.PatternType),
        (CODE_KINDS, pb.CodeKind),
        (OUTCOMES, outcome_pb2.Outcome),
        (RANKINGS, outcome_pb2.Ranking),
    ):
        for number in kind.values():
            if number:
                assert words.parse(words.word(number)) == number
