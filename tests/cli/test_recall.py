"""`lot-grpc recall` against a server that answers as it is told, and texts that agents stored."""

from __future__ import annotations

import json
import re

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import ParseDict
from rich.cells import cell_len

from lot_grpc.cli.pattern_texts import LISTED
from lot_grpc.pb.lot.v1 import admin_service_pb2, outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from tests.cli.patterns import COLOURS, WIDE, find, hit, outcomes, pattern, table_of
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import ran, rows_of, steering

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


def test_how_likely_it_is_the_same_task_is_told_where_it_is_known(runner, fake):
    find(fake, hit(pattern(1), 0.91, match_probability=0.874), hit(pattern(2), 0.9))
    result = ran(runner, fake, "recall", "do it")
    head, first, second = table_of(result.stdout)
    assert head.split()[:3] == ["similarity", "match", "rate"]
    assert first.split()[:3] == ["0.91", "0.87", "1.00"]
    assert second.split()[:2] == ["0.90", "1.00"]


def test_what_is_asked_goes_to_the_server(runner, fake):
    result = ran(
        runner, fake, "recall", "do it", "--language", "py", "--language", "go", "--kind", "code",
        "--kind", "LEARNED", "--category", "a", "--task-type", "b", "--min-success-rate", "0.7",
        "--min-usage", "3", "--limit", "9", "--ranking", "Reliable", "--min-match", "0.1",
        "--explain", "-n", "team",
    )  # fmt: skip
    assert result.exit_code == 0, result
    [request] = fake.patterns.requests
    narrowed = pb.PatternFilter(
        languages=["py", "go"],
        kinds=[pb.PATTERN_KIND_CODE, pb.PATTERN_KIND_LEARNED],
        categories=["a"],
        task_types=["b"],
        min_success_rate=0.7,
        min_usage_count=3,
    )
    assert request == service_pb.RecallPatternsRequest(
        namespace="team",
        query="do it",
        filter=narrowed,
        limit=9,
        ranking=outcome_pb2.RANKING_RELIABLE,
        min_match=0.1,
        explain=True,
        read_mask=FieldMask(paths=LISTED),
    )


def test_without_options_nothing_narrows(runner, fake):
    assert ran(runner, fake, "recall", "x").exit_code == 0
    [request] = fake.patterns.requests
    assert request.filter == pb.PatternFilter()
    assert (request.limit, request.ranking) == (0, outcome_pb2.RANKING_BALANCED)


def test_nothing_found_is_said_and_no_failure(runner, fake):
    result = ran(runner, fake, "recall", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "No patterns match.\n", "")


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
        outcome_pb2.OutcomeEvidence(
            query=f"query {n}\n{NASTY}", similarity=0.9, trial_count=4, success_count=3.5
        )
        for n in range(5)
    ]
    told = service_pb.RecallExplanation(
        ranking=outcome_pb2.RANKING_EXPLORE, candidate_count=50, reorder_margin=0.05, seed=0,
        matching_count=1200, namespace_count=3000,
        filters=[service_pb.FilterCount(field="languages", excluded_count=1800)],
    )  # fmt: skip
    told.half_life.FromSeconds(90 * 86_400)
    find(
        fake,
        hit(pattern(1), score_parts=parts, outcome_evidence=learned),
        explanation=told,
        retrieval_id="r-1",
    )
    result = ran(runner, fake, "recall", "x", "--explain")
    assert "p-1  score 0.500 = 0.500 similarity + 0.1 · 0.250 learned" in result.stdout
    assert "learned from 3.5 of 4 worked for a query 0.90 similar: query 0 " in result.stdout
    assert result.stdout.count("learned from") == 3
    rows = rows_of(result.stdout)
    assert rows["ranking"] == "explore"
    assert rows["ranked"] == "50 candidates"
    assert rows["matching"] == "1,200 of 3,000 patterns"
    assert rows["languages"] == "excludes 1,800"
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
        total_count=1, by_language={NASTY: 1}, by_category={NASTY: 1}, most_used_pattern_id=NASTY
    )
    fake.admin.info.CopyFrom(
        admin_service_pb2.GetServerInfoResponse(
            version=NASTY, backend=NASTY, model=NASTY, record_counts={NASTY: 1}
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
