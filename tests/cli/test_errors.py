"""`lot-grpc errors` against a server that answers as it is told."""

from __future__ import annotations

import io
import json
import re

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.errors import MAX_BYTES, fitting, from_stream, without_escapes
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.cli.patterns import COLOURS, WIDE, outcomes
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import ran, rows_of, steering


def solution(number: int, **fields) -> pb.ErrorSolution:
    made = {"error_message": "m", "resolution": "fix it", "worked": True, **fields}
    return pb.ErrorSolution(
        error_solution_id=f"s-{number}", **{"outcomes": outcomes(4, 3, 0.8), **made}
    )


def exact(one: pb.ErrorSolution, *differences: tuple[str, str, str], **fields):
    told = [pb.ErrorDifference(part=p, given=g, stored=s) for p, g, s in differences]
    return pb.ErrorSolutionHit(
        error_solution=one, match=pb.ERROR_MATCH_EXACT_SIGNATURE, score=0.9, similarity=0.93,
        differences=told, **fields,
    )  # fmt: skip


def similar(one: pb.ErrorSolution):
    return pb.ErrorSolutionHit(
        error_solution=one, match=pb.ERROR_MATCH_SIMILAR, score=0.5, similarity=0.61
    )


def hold(fake, *hits, unsolved=(), **fields) -> None:
    fake.changes.found = pb.FindErrorSolutionsResponse(hits=hits, unsolved=unsolved, **fields)


def given_on_stdin(runner, fake, text: str | bytes, *options: str):
    arguments = ["errors", "-", "-a", fake.address, *options]
    return runner.invoke(command_line, arguments, input=text)


# --- what is shown ----------------------------------------------------------------------------


def test_the_same_error_comes_with_what_differs_fix_and_steps(runner, fake):
    first = solution(
        1, error_type="ModuleNotFoundError", error_message="No module named 'PIL'\nmore",
        steps=["pip install [b]Pillow[/b]", "run again"], language="python",
    )  # fmt: skip
    hold(
        fake,
        exact(first, ("name", "yaml", "PIL"), ("path", "/a.py", "")),
        exact(solution(2, outcomes=outcomes())),
        similar(solution(3)),
    )
    result = ran(runner, fake, "errors", "No module named 'yaml'")
    assert (result.exit_code, result.stderr) == (0, "")
    one, two, three = result.stdout.split("\n\n")
    head, differs, path = one.splitlines()[:3]
    assert head == (
        "same error, different details  0.93  ModuleNotFoundError: No module named 'PIL' more"
    )
    assert differs.split("differs")[1].strip() == "name yaml here, PIL there"
    assert path.strip() == "path /a.py here, nothing there"
    rows = rows_of(one)
    assert rows["fix"] == "fix it"
    assert rows["steps"] == "1. pip install [b]Pillow[/b]"
    assert "2. run again" in one
    assert rows["outcomes"].startswith("3 of 4 worked, 1 failed; rate 0.80")
    assert rows["id"] == "s-1"
    assert two.startswith("same error  0.93  m\n")
    assert rows_of(two)["outcomes"] == "not used yet; saved with rate 1.00"
    assert "differs" not in two
    assert three.startswith("similar  0.61  m\n")


def test_what_did_not_help_is_told_apart(runner, fake):
    failed = [
        solution(8, worked=False, resolution="reboot"),
        solution(9, worked=False, resolution="", steps=["pray"]),
    ]
    hold(fake, exact(solution(1)), unsolved=[exact(failed[0]), similar(failed[1])])
    shown = ran(runner, fake, "errors", "x").stdout
    helped, apart = shown.split("\nTried without success\n\n")
    assert "s-1" in helped
    assert "s-8" not in helped
    assert [rows_of(part)["tried"] for part in apart.split("\n\n")] == ["reboot", "1. pray"]
    assert "fix" not in rows_of(apart)


def test_nothing_known_is_said_and_no_failure_even_if_something_was_tried(runner, fake):
    result = ran(runner, fake, "errors", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "No known solution.\n", "")
    hold(fake, unsolved=[exact(solution(1, worked=False))])
    shown = ran(runner, fake, "errors", "x").stdout
    assert shown.startswith("No known solution.\n\nTried without success\n")


def test_what_is_asked_goes_to_the_server(runner, fake):
    result = ran(
        runner, fake, "errors", "boom", "--type", "E", "--language", "py", "--category", "a",
        "--category", "b", "--limit", "9", "--unsolved", "--min-match", "0.02", "--explain",
        "-n", "team",
    )  # fmt: skip
    assert result.exit_code == 0, result
    [asked] = fake.changes.looked_for
    assert asked == pb.FindErrorSolutionsRequest(
        namespace="team", error_type="E", error_message="boom", language="py",
        categories=["a", "b"], limit=9, include_unsolved=True, min_match=0.02, explain=True,
    )  # fmt: skip
    assert ran(runner, fake, "errors", "--type", "E").exit_code == 0
    assert fake.changes.looked_for[1] == pb.FindErrorSolutionsRequest(error_type="E")


def test_how_likely_a_similar_one_helps_is_told_where_it_is_known(runner, fake):
    rated = similar(solution(1))
    rated.match_probability = 0.034
    hold(fake, rated, similar(solution(2)))
    shown = ran(runner, fake, "errors", "x").stdout
    assert "similar  0.61  match 0.03  " in shown
    assert shown.count("match") == 1


def test_an_explained_score_is_told_by_its_parts(runner, fake):
    parts = [outcome_pb2.ScorePart(name="agreement", value=0.5, weight=0.49)]
    hold(fake, exact(solution(1), score_parts=parts))
    shown = ran(runner, fake, "errors", "x", "--explain").stdout
    assert rows_of(shown)["score"] == "0.900 = 0.49 · 0.500 agreement"


def test_many_differences_are_cut(runner, fake):
    hold(fake, exact(solution(1), *(("number", str(n), "0") for n in range(20))))
    shown = ran(runner, fake, "errors", "x").stdout
    assert shown.count(" here, ") == 6
    assert "and 14 more" in shown


def test_nothing_of_a_stored_text_steers_the_terminal(runner, fake):
    nasty = solution(
        1, error_type=NASTY, error_message=NASTY, resolution=NASTY, steps=[NASTY], context=NASTY,
        language=NASTY,
    )  # fmt: skip
    nasty.error_solution_id = NASTY
    notices = [outcome_pb2.Notice(message=NASTY)]
    hold(fake, exact(nasty, (NASTY, NASTY, NASTY)), unsolved=[similar(nasty)], notices=notices)
    for settings in ({}, COLOURS):
        result = ran(runner, fake, "errors", NASTY, "--explain", COLUMNS=300, **settings)
        assert result.exit_code == 0, result
        assert "\x1b[31mred" not in result.output
        assert steering(re.sub(r"\x1b\[[\d;]*m", "", result.output)) == []
        assert "\\x1b]0;owned\\x07\\x1b[31mred\\u202egnp\\x9b2J" in result.stdout
        assert "[bold]x[/bold] :smile:" in result.stdout


@pytest.mark.parametrize("width", [30, 80])
@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_no_line_is_wider_than_the_terminal(runner, fake, text, width):
    wide = solution(1, error_message=text * 90, resolution=text * 90, context=text * 9000)
    hold(fake, exact(wide, ("name", text * 90, text)), similar(wide))
    result = ran(runner, fake, "errors", "x", COLUMNS=width)
    assert result.exit_code == 0, result
    assert max(cell_len(line) for line in result.stdout.splitlines()) <= width
    assert len(result.stdout) < 20_000


def test_json_is_the_whole_answer_on_one_line(runner, fake):
    hold(fake, exact(solution(1, error_message=NASTY)), unsolved=[similar(solution(2))])
    result = ran(runner, fake, "errors", "x", "--json")
    [line] = result.stdout.splitlines()
    assert ParseDict(json.loads(line), pb.FindErrorSolutionsResponse()) == fake.changes.found
    assert steering(line) == []


def test_colours_come_only_where_they_are_wanted(runner, fake):
    hold(fake, exact(solution(1)))
    assert "\x1b[1;32msame error" in ran(runner, fake, "errors", "x", **COLOURS).stdout
    assert "\x1b[3" not in ran(runner, fake, "errors", "x", NO_COLOR="1", **COLOURS).stdout
    assert "\x1b" not in ran(runner, fake, "errors", "x").stdout


# --- what is asked with -----------------------------------------------------------------------


def test_a_tools_output_is_read_without_its_colours(runner, fake):
    coloured = (
        "\x1b]0;title\x07\x1b[1m\x1b[38;5;9merror\x1b[0m: it\r\n\x1b(B\tis \x1b]8;;http://x\x1b\\so"
    )
    assert given_on_stdin(runner, fake, coloured).exit_code == 0
    assert fake.changes.looked_for[0].error_message == "error: it\n\tis so"
    assert ran(runner, fake, "errors", coloured).exit_code == 0
    assert fake.changes.looked_for[1].error_message == "error: it\n\tis so"


def test_bytes_that_are_no_text_do_no_harm(runner, fake):
    assert given_on_stdin(runner, fake, b"caf\xe9 \x00failed\xff").exit_code == 0
    assert fake.changes.looked_for[0].error_message == "caf\ufffd failed\ufffd"


@pytest.mark.parametrize("size", [MAX_BYTES + 100, 3_000_000])
@pytest.mark.parametrize("options", [[], ["--head"]])
def test_of_a_long_error_the_end_is_looked_for_and_that_is_said(runner, fake, size, options):
    lines = [f"line {n:08} é" for n in range(size // 16)]
    log = "\n".join(lines)
    for result in (
        given_on_stdin(runner, fake, log, *options),
        ran(runner, fake, "errors", log, *options),
    ):
        assert result.exit_code == 0, result
        asked = fake.changes.looked_for[-1].error_message
        assert MAX_BYTES - 100 < len(asked.encode()) <= MAX_BYTES
        assert set(asked.split("\n")) <= set(lines)  # whole lines
        assert log.startswith(asked) if options else log.endswith(asked)
        which, other = ("first", "leave out --head") if options else ("last", "--head uses")
        sizes = f"the {which} {len(asked.encode()):,} of {len(log.encode()):,} bytes"
        assert result.stderr.startswith(f"note: searching for only {sizes}; {other}")


def test_an_error_that_fits_is_asked_as_it_stands(runner, fake):
    text = "é" * (MAX_BYTES // 2)
    result = given_on_stdin(runner, fake, text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert fake.changes.looked_for[0].error_message == text


@given(st.text(st.sampled_from("aé漢\n\t🚀"), max_size=300), st.integers(1, 4000), st.booleans())
def test_what_is_asked_is_an_end_of_the_error_that_fits(unit, times, head):
    text = unit * times
    found = fitting(text, head=head)
    assert len(found.text.encode()) <= MAX_BYTES
    assert text.startswith(found.text) if head else text.endswith(found.text)
    assert found.given_bytes == len(text.encode())
    assert found.cut == (found.text != text)
    assert from_stream(io.BytesIO(text.encode()), head=head) == found


@given(st.text())
def test_without_escapes_no_control_character_is_left(text):
    plain = without_escapes(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", plain)
    assert without_escapes(plain) == plain


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give MESSAGE, - to read it"),
        ([" "], "give MESSAGE, - to read it"),
        (["-"], "standard input is empty"),
        (["\x1b[0m"], "MESSAGE is empty"),
        (["x", "--limit", "101"], "--limit"),
    ],
)
def test_wrong_usage_exits_2_and_asks_nothing(runner, fake, arguments, told):
    result = ran(runner, fake, "errors", *arguments, COLUMNS=200)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert fake.changes.looked_for == []


def test_a_refusal_is_told_in_the_words_of_the_server(runner, fake):
    fake.changes.refuses = (grpc.StatusCode.UNAVAILABLE, "EMBEDDING_UNAVAILABLE", "try again")
    result = ran(runner, fake, "errors", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: {fake.address}: UNAVAILABLE EMBEDDING_UNAVAILABLE: try again\n"
    )
