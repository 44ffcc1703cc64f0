"""The same error is the same in any dress, and no unrelated one is."""

from __future__ import annotations

import itertools

import pytest

from lot_grpc.domain.error_text.signature import read_error, same_error, wrappers
from tests.errors.cases import Case, read_cases
from tests.errors.dresses import dresses_of
from tests.sampling import one_in

CASES = read_cases("tools") + read_cases("reports")
TELLING = [case for case in CASES if not case.generic]
PARTS = 4
"""Of all pairs. The normal run takes one: each error against a quarter of the others."""
READ = {case.id: read_error("", str(case.saved)) for case in CASES}


@pytest.mark.parametrize("part", one_in(PARTS, range(PARTS)))
def test_no_two_unrelated_errors_are_the_same(part: int):
    """Of all pairs of all tools; with one signature in common they are still two."""
    pairs = itertools.combinations(CASES, 2)
    false = [
        (one.id, other.id, shared[0].text)
        for one, other in itertools.islice(pairs, part, None, PARTS)
        if not one.related(other) and (shared := same_error(READ[one.id], READ[other.id]))
    ]
    assert false == []


@pytest.mark.parametrize("case", [case for case in CASES if case.generic], ids=lambda case: case.id)
def test_generic_lines_are_no_signature(case):
    assert READ[case.id].signatures == ()


def test_nearly_every_error_has_a_signature():
    assert sum(not READ[case.id].signatures for case in TELLING) <= 4


SIGNED = [case for case in TELLING if READ[case.id].signatures]


def _alike(case: Case) -> list[bool]:
    """Whether an error is the same in each of its dresses."""
    dressed = [text for dress in dresses_of("all").values() if (text := dress(case.saved))]
    return [bool(same_error(READ[case.id], read_error("", text))) for text in dressed]


def test_errors_are_the_same_in_nine_of_ten_dresses():
    alike = [each for case in SIGNED[::12] for each in _alike(case)]
    assert sum(alike) >= 0.9 * len(alike)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", SIGNED, ids=lambda case: case.id)
def test_each_error_is_the_same_in_many_dresses(case: Case):
    alike = _alike(case)
    assert sum(alike) >= 0.4 * len(alike)


def test_a_line_before_unrelated_errors_of_a_namespace_is_a_wrapper():
    line = "deploy.sh: the rollout of the shop was not accepted by the cluster"
    causes = ["No module named 'a'", "disk quota exceeded", "permission denied for relation x"]
    stored = [read_error("", f"ERROR: {line}\n{cause}") for cause in causes]
    seen = read_error("", f"ERROR: {line}\nunknown flag --wait")
    little = wrappers(seen, stored)
    assert seen.signature in little
    assert [same_error(seen, one, little) for one in stored] == [None, None, None]
    assert same_error(seen, seen, little)


@pytest.mark.parametrize(
    "text",
    [
        r'"a\nlost \ud83d here\nb"',
        r'{"message": "lost \ud83d here"}',
        "['" + "-" * 16_000 + "1]",
        "[" + "-" * 15_000 + "'1']",
        "x " + "[' " * 20_000,
        "x " + "{'a': [" * 2_000,
    ],
)
def test_a_text_that_is_nearly_data_is_read(text):
    read_error("", text).line.encode()
    for one in read_error("", text).signatures:
        one.text.encode()
