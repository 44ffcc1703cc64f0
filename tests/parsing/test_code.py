"""Whatever the text is: pieces are parts of it, lines are right, and what is not told is said."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lot_grpc.domain.code_shapes import complexity_level
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.errors import LimitExceededError
from lot_grpc.parsing.code import MAX_PIECE_BYTES, parse_code
from lot_grpc.parsing.interface import LANGUAGES, MAX_TOTAL_BYTES
from lot_grpc.parsing.walk import MAX_BROKEN, MAX_PIECES
from tests.parsing.samples import SAMPLES


def check(code, language):
    """The laws that hold for any text."""
    parsed = parse_code(code, language)
    lines = code.split("\n")
    for piece in parsed.pieces:
        assert piece.code
        assert piece.code in code
        assert 1 <= piece.first_line <= piece.last_line <= len(lines)
        held = "\n".join(lines[piece.first_line - 1 : piece.last_line])
        assert piece.code.rstrip("\n") in held
        assert piece.code.strip("\n").count("\n") == piece.last_line - piece.first_line
        assert piece.cyclomatic_complexity >= 1
        assert list(piece.tags) == sorted(set(piece.tags))
    assert len(parsed.unparsed) <= MAX_BROKEN + 1 + len(parsed.pieces)
    assert all(len(sentence) <= 1_200 and "\n" not in sentence for sentence in parsed.unparsed)
    return parsed


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_laws_hold_for_the_samples(language):
    assert len(check(SAMPLES[language], language).pieces) > 5


@given(code=st.text(max_size=400), language=st.sampled_from(LANGUAGES))
def test_any_text_is_taken(code, language):
    check(code, language)


@example(seed=208, changes=6, language="javascript", written_in="javascript")  # a name of 2 lines
@given(
    seed=st.integers(0, 10**9),
    changes=st.integers(1, 12),
    language=st.sampled_from(LANGUAGES),
    written_in=st.sampled_from(LANGUAGES),
)
def test_code_with_letters_changed_left_out_or_doubled_is_taken(
    seed, changes, language, written_in
):
    chance = random.Random(seed)
    text = SAMPLES[written_in]
    for _ in range(changes):
        at = chance.randrange(len(text))
        to = min(len(text), at + chance.randrange(1, 40))
        text = chance.choice(
            [
                text[:at] + text[to:],
                text[:to] + text[at:],
                text[:at] + chance.choice("(){}[]<>:;\"'`\\\n\t é世🙂\r/*#") + text[at:],
            ]
        )
    check(text, language)


# --- line ends and letters --------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_line_ends_of_windows_change_nothing_but_themselves(language):
    unix = parse_code(SAMPLES[language], language)
    windows = check(SAMPLES[language].replace("\n", "\r\n"), language)
    assert not windows.unparsed
    assert [
        (p.kind, p.name, p.first_line, p.last_line, p.tags, p.signature, p.code)
        for p in unix.pieces
    ] == [
        (p.kind, p.name, p.first_line, p.last_line, p.tags, p.signature,
         p.code.replace("\r\n", "\n"))
        for p in windows.pieces
    ]  # fmt: skip


def test_names_in_any_script_and_a_mark_of_byte_order():
    code = "\ufeff# été 世界\ndef größe(längé: str = '🙂') -> int:\n    return größe('世界')\n"
    [piece] = check(code, "python").pieces
    assert (piece.name, piece.parameters) == ("größe", ("längé",))
    assert "recursion" in piece.tags
    assert piece.first_line == 2
    assert piece.doc == "# été 世界"


def test_a_column_is_counted_in_characters():
    [told] = parse_code("def f():\n  g('é世🙂', = 1)\n", "python").unparsed
    assert told == "line 2, column 12: cannot be parsed in f: ="


# --- broken code ------------------------------------------------------------------------------

BROKEN = {
    "python": ("def good(): return 1\n\ndef bad(:\n    return (\n\ndef fine(): return 2\n", "good"),
    "javascript": ("function good() {}\nfunction bad() { return (; }\nfunction fine() {}\n", "bad"),
    "typescript": ("function good() {}\nfunction bad(a: ) {}\nfunction fine() {}\n", "bad"),
    "go": ("package p\nfunc good() {}\nfunc bad() { x := }\nfunc fine() {}\n", "bad"),
    "rust": ("fn good() {}\nfn bad() { let = ; }\nfn fine() {}\n", "bad"),
    "java": ("class A { void good() {}\n void bad() { int = ; }\n void fine() {} }\n", "bad"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_broken_code_gives_what_is_whole_and_says_what_is_not(language):
    parsed = check(BROKEN[language][0], language)
    names = {piece.name.rpartition(".")[2] for piece in parsed.pieces}
    assert "good" in names
    assert "bad" not in names
    assert "A" not in names  # a class with a broken method is not whole
    assert parsed.unparsed
    assert all(sentence.startswith("line ") for sentence in parsed.unparsed)


def test_a_broken_place_says_what_it_is_in():
    parsed = parse_code("class A:\n  def f(self):\n    x = = 1\n  def g(self): pass\n", "python")
    assert parsed.unparsed == ("line 3, column 9: cannot be parsed in A.f: =",)
    assert [piece.name for piece in parsed.pieces] == ["A.g"]


def test_many_broken_places_are_counted():
    parsed = parse_code("".join(f"x{n} = = {n}\n" for n in range(200)), "python")
    assert len(parsed.unparsed) == MAX_BROKEN + 1
    assert parsed.unparsed[-1] == "and 150 more places"


@pytest.mark.parametrize("code", ["", "\n", "# nothing but words\n", "import a\n", "x = 1\n"])
def test_code_with_nothing_in_it_gives_nothing(code):
    parsed = parse_code(code, "python")
    assert parsed.pieces == ()
    assert parsed.unparsed == ()


# --- bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("(" * 50_000, "python"),
        ("x = " + "-" * 50_000 + "1", "python"),
        ("f(" * 50_000 + ")" * 50_000, "javascript"),
        ("{" * 50_000, "java"),
        ("fn f() {" * 500 + "}" * 500, "rust"),
        ("a(() => " * 20_000, "typescript"),
        ("package p\nfunc f() { " + "if a { " * 20_000, "go"),
    ],
    ids=lambda value: value[:8],
)
def test_no_depth_is_too_deep(code, language):
    parse_code(code, language)


def test_more_pieces_than_are_taken_are_refused():
    code = "def f(): pass\n" * MAX_PIECES
    assert len(parse_code(code, "python").pieces) == MAX_PIECES
    with pytest.raises(LimitExceededError, match="smaller parts") as raised:
        parse_code(code + "def f(): pass\n", "python")
    assert raised.value.metadata["limit"] == str(MAX_PIECES)


def test_pieces_in_one_another_that_come_to_too_much_are_refused():
    filling = "  x = 1;\n" * 20_000
    code = "function f() {" * 30 + filling + "}" * 30
    with pytest.raises(LimitExceededError, match="since they nest") as raised:
        parse_code(code, "javascript")
    assert int(raised.value.metadata["given"]) > MAX_TOTAL_BYTES


def test_a_piece_larger_than_a_pattern_is_told_and_what_is_in_it_is_not_lost():
    filling = "    x = 1\n" * (MAX_PIECE_BYTES // 10)
    code = f"class Large:\n  def small(self): pass\n  def long(self):\n{filling}"
    parsed = check(code, "python")
    assert [piece.name for piece in parsed.pieces] == ["Large.small"]
    assert [sentence.partition(" has ")[0] for sentence in parsed.unparsed] == [
        "line 1, column 1: Large",
        "line 3, column 3: Large.long",
    ]
    fits = parse_code(f"def f():\n{filling}"[: MAX_PIECE_BYTES - 10] + "\n", "python")
    assert [piece.name for piece in fits.pieces] == ["f"]


@pytest.mark.parametrize(
    ("number", "level"),
    [(1, "LOW"), (5, "LOW"), (6, "MEDIUM"), (10, "MEDIUM"), (11, "HIGH"), (500, "HIGH")],
)
def test_the_bounds_of_complexity(number, level):
    assert complexity_level(number) is Complexity[level]
