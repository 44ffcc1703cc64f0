"""The data that ``measure`` reads is whole, and every dress fits every text of it."""

from __future__ import annotations

from tests.errors.cases import Case, Text, read_cases
from tests.errors.dresses import dresses_of
from tests.errors.measure import Measured, measure_exact, measure_saves, nearest_lines


def test_every_error_is_marked_and_no_two_are_one():
    cases = read_cases("tools") + read_cases("reports")
    assert len(cases) > 100
    for case in cases:
        assert case.saved.telling or case.generic, case.id
        assert all(text.telling for text in case.again.values()), case.id
    texts = [str(text) for case in cases for text in (case.saved, *case.again.values())]
    assert len(texts) == len(set(texts))


def test_a_tool_is_in_one_half():
    for kind in ("tools", "reports", "logs"):
        halves = [{case.tool for case in read_cases(kind, part)} for part in ("dev", "held")]
        assert not halves[0] & halves[1]


def test_every_log_is_marked():
    assert all(log.saved.telling for log in read_cases("logs"))


def test_every_dress_keeps_what_tells_the_error():
    text = Text.of("first\nsecond\nthird\nfourth\nfifth\nsixth\n»seventh <tells> it\neighth\nninth")
    for name, dress in dresses_of("all").items():
        made = dress(text)
        if made is not None:
            assert "seventh" in made, name
            assert made != str(text), name


def test_a_cut_leaves_out_what_it_would_hide():
    dresses = dresses_of("dev")
    assert dresses["head_cut"](Text.of("»a\nb\nc")) is None
    assert dresses["head_cut"](Text.of("a\n»b\nc")) == "b\nc"
    assert dresses["truncated_middle"](Text.of("a\nb\nc\n»d\ne\nf\ng\nh\ni")) is None


def test_a_headline_is_looked_up_by_its_words():
    lines = ["10:11 make all", "10:12 a.c:3: error: 'x' undeclared", "make: *** [all] Error 2"]
    assert nearest_lines("'x' undeclared", lines) == {1}
    assert nearest_lines("Error 2", lines) == {2}
    assert nearest_lines("", lines) == nearest_lines("unlike", lines) == set()


async def test_false_and_missed_and_lost_are_counted():
    def case(name: str, saved: str, **again: str) -> Case:
        texts = {which: Text.of(text) for which, text in again.items()}
        return Case("dev", "tool", name, Text.of(saved), again=texts)

    missing = case("missing", "KeyError: 'a'", same="KeyError: 'b'", other="ValueError: no c")
    twin, else_ = case("twin", "KeyError: 'a'"), case("else", "TypeError: no e")
    measured = Measured()
    await measure_exact(measured, [missing], [missing, twin, else_], {})
    assert (measured.plain.false, measured.plain.pairs) == (2, 6)
    assert (measured.plain.same.right, measured.plain.again.right) == (1, 1)
    await measure_saves(measured, [missing, twin, else_])
    assert measured.lost == 1
    assert "false_exact" in measured.missed()
