"""`lot-grpc recall`, `patterns` and `stats` against a server that answers as it is told."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from rich.cells import cell_len

from lot_grpc.cli.pattern_texts import outcomes_text, rate_text
from lot_grpc.cli.stats_tables import counts_text, size_text
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import CODE_KINDS, OUTCOMES, PATTERN_KINDS, PATTERN_TYPES, RANKINGS
from lot_grpc.pb.lot.v1 import admin_service_pb2, outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import ran, rows_of, steering

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COLOURS = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
WIDE = {
    "cjk": "漢字を直す",
    "emoji": "🚀 deploy 👩🏽 it",
    "combining": "e\u0301tude\u0323 na\u0303o",
    "arabic": "إصلاح الخطأ في الخادم",
    "hebrew": "תיקון השגיאה",
    "thai": "แก้ไขข้อผิดพลาด",
}


def outcomes(usage: int = 0, successes: int = 0, rate: float = 1.0) -> outcome_pb2.Outcomes:
    return outcome_pb2.Outcomes(
        usage_count=usage,
        success_count=successes,
        failure_count=usage - successes,
        success_rate=rate,
        reliability=0.25 if usage else 0,
    )


def pattern(number: int, used: outcome_pb2.Outcomes | None = None, **fields) -> pb.Pattern:
    made = pb.Pattern(
        pattern_id=f"p-{number}",
        outcomes=used or outcomes(),
        **{
            "task": "t",
            "kind": pb.PATTERN_KIND_TASK,
            "pattern_type": pb.PATTERN_TYPE_SUCCESS,
            **fields,
        },
    )
    made.create_time.FromDatetime(START)
    return made


def hit(one: pb.Pattern, similarity: float = 0.5, **fields) -> service_pb.PatternHit:
    return service_pb.PatternHit(pattern=one, similarity=similarity, score=similarity, **fields)


def find(fake, *hits: service_pb.PatternHit, **fields) -> None:
    fake.patterns.answer = service_pb.RecallPatternsResponse(hits=hits, **fields)


def table_of(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.strip(" ─")]


# --- recall -----------------------------------------------------------------------------------


def test_a_row_for_each_hit_with_rate_usage_similarity_and_id(runner, fake):
    find(
        fake,
        hit(pattern(1, outcomes(12, 9, 0.81), task="[b]write[/b] :smile:", language="go"), 0.912),
        hit(pattern(2, title="named", kind=pb.PATTERN_KIND_CODE), 0.7),
        hit(pattern(3, pattern_type=pb.PATTERN_TYPE_FAILURE, task="no sleep"), 0.6),
    )
    result = ran(runner, fake, "recall", "do it")
    assert (result.exit_code, result.stderr) == (0, "")
    head, first, second, third = table_of(result.stdout)
    assert head.split() == ["similarity", "rate", "used", "kind", "language", "id", "task"]
    assert first.split() == ["0.91", "0.81", "12", "task", "go", "p-1", "[b]write[/b]", ":smile:"]
    assert second.split() == ["0.70", "1.00", "not", "used", "yet", "code", "p-2", "named"]
    assert third.split()[-3:] == ["failure:", "no", "sleep"]


def test_what_is_asked_goes_to_the_server(runner, fake):
    result = ran(
        runner, fake, "recall", "do it", "--language", "py", "--language", "go", "--kind", "code",
        "--kind", "LEARNED", "--category", "a", "--task-type", "b", "--min-success-rate", "0.7",
        "--min-usage", "3", "--limit", "9", "--ranking", "Reliable", "--explain", "-n", "team",
    )  # fmt: skip
    assert result.exit_code == 0, result
    [asked] = fake.patterns.asked
    narrowed = pb.PatternFilter(
        languages=["py", "go"],
        kinds=[pb.PATTERN_KIND_CODE, pb.PATTERN_KIND_LEARNED],
        categories=["a"],
        task_types=["b"],
        min_success_rate=0.7,
        min_usage_count=3,
    )
    assert asked == service_pb.RecallPatternsRequest(
        namespace="team",
        query="do it",
        filter=narrowed,
        limit=9,
        ranking=outcome_pb2.RANKING_RELIABLE,
        explain=True,
    )


def test_without_options_nothing_narrows(runner, fake):
    assert ran(runner, fake, "recall", "x").exit_code == 0
    [asked] = fake.patterns.asked
    assert asked.filter == pb.PatternFilter()
    assert (asked.limit, asked.ranking) == (0, outcome_pb2.RANKING_BALANCED)


def test_nothing_found_is_said_and_no_failure(runner, fake):
    result = ran(runner, fake, "recall", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "No pattern fits.\n", "")


def test_notices_are_told_on_stderr(runner, fake):
    find(fake, hit(pattern(1)), notices=[outcome_pb2.Notice(message="too long\x1b[2J")])
    result = ran(runner, fake, "recall", "x")
    assert result.stderr == "note: too long\\x1b[2J\n"
    as_json = ran(runner, fake, "recall", "x", "--json")
    assert as_json.stderr == ""


def test_an_explanation_tells_parts_what_was_learned_and_filters(runner, fake):
    parts = [
        outcome_pb2.ScorePart(name="similarity", value=0.5, weight=1),
        outcome_pb2.ScorePart(name="learned", value=0.25, weight=0.1),
    ]
    learned = [
        service_pb.LearnedFrom(
            query=f"query {n}\n{NASTY}", similarity=0.9, trial_count=4, success_count=3.5
        )
        for n in range(5)
    ]
    told = service_pb.RecallExplanation(
        ranking=outcome_pb2.RANKING_EXPLORE, pool_size=50, gate=0.05, seed=0,
        matching_count=1200, namespace_count=3000,
        filters=[service_pb.FilterCount(field="languages", removed_count=1800)],
    )  # fmt: skip
    told.half_life.FromSeconds(90 * 86_400)
    find(
        fake,
        hit(pattern(1), score_parts=parts, learned_from=learned),
        explanation=told,
        retrieval_id="r-1",
    )
    result = ran(runner, fake, "recall", "x", "--explain")
    assert "p-1  score 0.500 = 0.500 similarity + 0.1 · 0.250 learned" in result.stdout
    assert "learned from 3.5 of 4 on a query 0.90 alike: query 0 " in result.stdout
    assert result.stdout.count("learned from") == 3
    rows = rows_of(result.stdout)
    assert rows["ranking"] == "explore"
    assert rows["ranked"] == "50 candidates"
    assert rows["let through"] == "1,200 of 3,000 patterns"
    assert rows["languages"] == "keeps 1,800 out"
    assert rows["half-life"] == "90 d"
    assert rows["seed"] == "0"
    assert rows["retrieval id"] == "r-1"
    assert steering(result.output) == []


def test_recall_as_json_is_the_whole_answer_on_one_line(runner, fake):
    find(fake, hit(pattern(1, task=NASTY)), retrieval_id="r-1")
    [line] = ran(runner, fake, "recall", "x", "--json").stdout.splitlines()
    assert ParseDict(json.loads(line), service_pb.RecallPatternsResponse()) == fake.patterns.answer
    assert steering(line) == []


def test_rates_have_colours_and_none_until_they_are_used(runner, fake):
    find(fake, *(hit(pattern(n, outcomes(1, 1, n / 10))) for n in (9, 6, 2)), hit(pattern(1)))
    shown = ran(runner, fake, "recall", "x", **COLOURS).stdout
    for coloured in ("\x1b[32m0.90", "\x1b[33m0.60", "\x1b[31m0.20", "\x1b[2m1.00"):
        assert coloured in shown
    assert "\x1b[3" not in ran(runner, fake, "recall", "x", NO_COLOR="1", **COLOURS).stdout
    assert "\x1b" not in ran(runner, fake, "recall", "x").stdout
    assert "\x1b" not in ran(runner, fake, "recall", "x", "--json", **COLOURS).stdout


# --- what agents stored -----------------------------------------------------------------------


def nasty() -> pb.Pattern:
    action = pb.Action(tool=NASTY, note=NASTY)
    action.args.update({NASTY: NASTY})
    one = pattern(
        1, title=NASTY, task=NASTY, context=NASTY, actions=[action], code=NASTY, language=NASTY,
        category=NASTY, tags=[NASTY], labels={"a": NASTY}, tools=[NASTY], approach=NASTY,
    )  # fmt: skip
    one.pattern_id = f"p-1{NASTY}"
    return one


@pytest.mark.parametrize("settings", [{}, COLOURS])
def test_nothing_of_a_stored_text_steers_the_terminal(runner, fake, settings):
    fake.patterns.patterns = [nasty()]
    fake.patterns.outcomes = [service_pb.OutcomeEntry(outcome_id=NASTY, query=NASTY, note=NASTY)]
    find(fake, hit(nasty()))
    fake.patterns.stats = service_pb.GetPatternStatsResponse(
        total_patterns=1, by_language={NASTY: 1}, by_category={NASTY: 1}, most_used_pattern_id=NASTY
    )
    fake.admin.info.CopyFrom(
        admin_service_pb2.GetServerInfoResponse(
            version=NASTY, backend=NASTY, model=NASTY, counts={NASTY: 1}
        )
    )
    fake.admin.info.store.detail = NASTY
    for arguments in (
        ["recall", "x", "--explain"],
        ["patterns"],
        ["patterns", nasty().pattern_id],
        ["stats"],
    ):
        result = ran(runner, fake, *arguments, COLUMNS=400, **settings)
        assert result.exit_code == 0, result
        plain = re.sub(r"\x1b\[[\d;]*m", "", result.output) if settings else result.output
        assert steering(plain) == []
        assert "\x1b[31mred" not in result.output
        assert "\\x1b]0;owned\\x07\\x1b[31mred\\u202egnp\\x9b2J" in plain
        assert "[bold]x[/bold] :smile:" in plain


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("width", [70, 110])
def test_columns_stay_straight_whatever_the_letters(runner, fake, text, width):
    rows = [
        pattern(1, task="|plain"),
        pattern(2, task=f"|{text}", language=text[:6]),
        pattern(3, task=f"|{text * 20}", language=text[:6]),
    ]
    find(fake, *map(hit, rows))
    fake.patterns.patterns = rows
    for arguments in (["recall", "x"], ["patterns"]):
        head, *lines = table_of(ran(runner, fake, *arguments, COLUMNS=width).stdout)
        before = {cell_len(line.partition("|")[0]) for line in lines}
        assert before == {cell_len(head.partition("task")[0])}
        assert all(cell_len(line) <= width for line in lines)
        # Letters from right to left would move what stands behind them: nothing does.
        assert head.split()[-1] == "task"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(runner, fake, width):
    rows = [
        pattern(1, task="漢字 " * 200, language="c" * 40),
        pattern(2, outcomes(10**9, 5, 0.5), task="x" * 500, code="let x = 1;\n" * 3 + "漢" * 400),
    ]
    fake.patterns.patterns = rows
    fake.patterns.outcomes = [service_pb.OutcomeEntry(outcome_id="o" * 30, query="漢" * 300)]
    find(fake, *map(hit, rows))
    for arguments in (["recall", "x"], ["patterns"], ["patterns", "p-2"]):
        result = ran(runner, fake, *arguments, COLUMNS=width, FORCE_COLOR="1", NO_COLOR="1")
        assert result.exit_code == 0, result
        plain = re.sub(r"\x1b\[[\d;]*m", "", result.stdout)
        assert max(cell_len(line) for line in plain.splitlines()) <= width


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
    [asked] = fake.patterns.asked
    assert (asked.page_size, asked.filter) == (20, pb.PatternFilter())


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
    more = f"there are more than these {count}: --limit N shows N of them, --all every one"
    assert (more in shown.stderr) == (count < 45)


def test_without_patterns_it_says_so(runner, fake):
    assert ran(runner, fake, "patterns").stdout == "There are no patterns.\n"
    narrowed = ran(runner, fake, "patterns", "--kind", "code")
    assert (narrowed.exit_code, narrowed.stdout) == (0, "No pattern is like that.\n")
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
            outcome_id="o-3", outcome=outcome_pb2.OUTCOME_FAILURE, corrects="o-2", note="late"
        ),
        service_pb.OutcomeEntry(
            outcome_id="o-2", outcome=outcome_pb2.OUTCOME_SUCCESS, query="do it", corrected_by="o-3"
        ),
        service_pb.OutcomeEntry(outcome_id="o-1", outcome=outcome_pb2.OUTCOME_SUCCESS, repeat=True),
        service_pb.OutcomeEntry(outcome_id="o-0", corrects="o-9"),
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
    assert rows["teaches"] == "success"
    assert rows["outcomes"] == (
        "9 of 12 worked, 1 in part, 2 failed; rate 0.81; reliability 0.25; 1 min 15 s on average"
    )
    assert rows["confidence"] == "0.62 after 3 feedback: 2 helpful, 1 not"
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


# --- stats ------------------------------------------------------------------------------------


def tell_stats(fake) -> None:
    fake.patterns.stats = service_pb.GetPatternStatsResponse(
        total_patterns=1500, used_count=500, average_success_rate=0.9, min_success_rate=0.1,
        max_success_rate=1.0, average_used_success_rate=0.75, total_usage_count=4000,
        total_success_count=3000, total_partial_count=200, total_failure_count=800,
        success_share=0.775, pinned_count=2, most_used_pattern_id="p-7",
        by_kind={"TASK": 1000, "CODE": 500, "LEARNED": 0}, by_code_kind={"ERROR_HANDLER": 3},
        by_pattern_type={"SUCCESS": 1500},
        by_language={f"lang-{n:02}": 100 - n for n in range(13)}, by_category={"back": 7},
    )  # fmt: skip
    few = service_pb.GetPatternStatsResponse(
        total_patterns=100, used_count=40, average_used_success_rate=0.5, total_usage_count=80,
        success_share=0.625,
    )  # fmt: skip
    never = service_pb.GetPatternStatsResponse(total_patterns=99, average_success_rate=1)
    fake.patterns.narrow_stats = {"lang-00": few, "lang-01": never, "back": few}
    info = admin_service_pb2.GetServerInfoResponse(
        version="1.2.3", backend="edge", model="some/model", dimensions=384,
        counts={"PATTERN": 1500, "EPISODE_EVENT": 2, "SESSION": 0},
    )  # fmt: skip
    info.store.disk_bytes, info.store.free_bytes, info.store.writable = 3 * 2**20, 2**40, True
    info.start_time.FromDatetime(START)
    info.server_time.FromDatetime(START.replace(hour=15))
    fake.admin.info = info


def test_stats_are_told_in_one_screen(runner, fake):
    tell_stats(fake)
    result = ran(runner, fake, "stats", "-n", "team")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = rows_of(result.stdout)
    assert rows["version"] == "1.2.3"
    assert rows["store"] == "edge, 3.0 MiB taken, 1.0 TiB free"
    assert rows["model"] == "some/model, 384 dimensions"
    assert rows["holds"] == "pattern 1,500, episode event 2"
    assert rows["up for"] == "3 h"
    assert "Patterns in team\n" in result.stdout
    assert rows["count"] == "1,500, 500 used, 1,000 not used yet, 2 pinned"
    assert rows["kinds"] == "task 1,000, code 500"
    assert rows["code"] == "error handler 3"
    assert rows["success rate"] == (
        "0.750 on average of those used; 0.900 of all, from 0.100 to 1.000"
    )
    assert rows["uses"] == "4,000: 3,000 worked, 200 in part, 800 failed (77.5%)"
    assert rows["most used"] == "p-7"
    lines = {line.split()[-1]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert lines["lang-00"] == ["100", "40", "0.500", "80", "62.5%", "lang-00"]
    assert lines["lang-01"] == ["99", "0", "0", "lang-01"]
    assert lines["back"] == ["7", "40", "0.500", "80", "62.5%", "back"]
    assert lines["more"] == ["267", "3", "more"]
    assert "lang-10" not in lines
    assert len(result.stdout.splitlines()) <= 40


def test_each_language_is_asked_for_with_the_same_filter(runner, fake):
    tell_stats(fake)
    options = ["--language", "a", "--language", "b", "--task-type", "c", "--min-usage", "2"]
    assert ran(runner, fake, "stats", *options, "-n", "team").exit_code == 0
    whole, *narrow = fake.patterns.asked
    assert list(whole.filter.languages) == ["a", "b"]
    assert [list(one.filter.languages) for one in narrow] == [
        *([f"lang-{n:02}"] for n in range(10)),
        ["a", "b"],
    ]
    assert list(narrow[-1].filter.categories) == ["back"]
    assert {(one.namespace, *one.filter.task_types) for one in narrow} == {("team", "c")}
    assert {one.filter.min_usage_count for one in narrow} == {2}


def test_stats_of_nothing_say_so(runner, fake):
    result = ran(runner, fake, "stats")
    assert result.exit_code == 0
    rows = rows_of(result.stdout)
    assert (rows["holds"], rows["count"]) == ("nothing", "none")
    assert "success rate" not in rows


def test_a_store_that_takes_no_writes_is_told(runner, fake):
    tell_stats(fake)
    fake.admin.info.store.writable = False
    fake.admin.info.store.detail = "the disk is full"
    assert "no writes: the disk is full" in ran(runner, fake, "stats").stdout


def test_stats_as_json_are_both_answers(runner, fake):
    tell_stats(fake)
    [line] = ran(runner, fake, "stats", "--json").stdout.splitlines()
    told = json.loads(line)
    assert set(told) == {"server", "patterns"}
    assert ParseDict(told["patterns"], service_pb.GetPatternStatsResponse()) == fake.patterns.stats
    info = ParseDict(told["server"], admin_service_pb2.GetServerInfoResponse())
    assert info == fake.admin.info
    assert len(fake.patterns.asked) == 1


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2**50, "1024.0 TiB"), (1536, "1.5 KiB")],
)
def test_sizes_are_told_in_the_unit_that_fits(size, shown):
    assert size_text(size) == shown


def test_counts_are_told_largest_first():
    assert (
        counts_text({"B": 1, "A": 1, "LONG_NAME": 1000, "NONE": 0}) == "long name 1,000, a 1, b 1"
    )


def test_a_reader_that_has_enough_ends_it_quietly(fake):
    # More than a pipe holds.
    fake.patterns.patterns = [pattern(n, task="x" * 1000) for n in range(500)]
    command = [sys.executable, "-m", "lot_grpc", "patterns", "--all", "--json", "-a", fake.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (1, b"")


# --- what cannot be meant, and what fails -----------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["recall", " "], "TEXT must not be empty"),
        (["recall", "x", "--kind", "lost"], "task, code, learned, distilled"),
        (["recall", "x", "--ranking", "best"], "balanced, similarity, reliable, explore"),
        (["recall", "x", "--limit", "101"], "--limit"),
        (["recall", "x", "--min-success-rate", "1.1"], "--min-success-rate"),
        (["recall"], "TEXT"),
        (["patterns", "p-1", "--language", "go"], "an ID goes with --limit or --all only"),
        (["patterns", "--limit", "3", "--all"], "exclude each other"),
        (["stats", "--kind", "lost"], "task, code, learned, distilled"),
    ],
)
def test_wrong_usage_exits_2_and_asks_nothing(runner, fake, arguments, told):
    result = ran(runner, fake, *arguments, COLUMNS=200)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""
    assert fake.patterns.asked == []


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
                assert words.numbers("--x", [words.word(number)]) == [number]
