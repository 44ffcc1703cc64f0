"""Graded words and phrases of praise and complaint in English, German and Spanish.

What they are and mean stands in ``data/judging_words.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lot_grpc.data import read_table

_TABLE: Final = read_table("judging_words.toml")


def _words(name: str) -> frozenset[str]:
    return frozenset(_TABLE[name].casefold().split())


def _graded(table: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    grades: dict[tuple[str, ...], float] = {}
    for group in table["words"]:
        grades.update({(word,): group["grade"] for word in group["words"].casefold().split()})
    for group in table["phrases"]:
        phrases = group["phrases"].casefold().split(",")
        grades.update({tuple(one.split()): group["grade"] for one in phrases})
    return grades


NEGATIONS: Final = _words("negations")
NEGATIONS_AFTER: Final = _words("negations_after")
IMPERATIVES: Final = _words("imperatives")
FILLERS: Final = _words("fillers")
EXCESS: Final = _words("excess")
CONTRASTS: Final = _words("contrasts")
OPEN: Final = _words("open")
STRENGTHS: Final[Mapping[str, float]] = {
    word: table["factor"]
    for table in _TABLE["strengths"]
    for word in table["words"].casefold().split()
}
GRADES: Final = _graded(_TABLE)
"""Grade by the words of a phrase, a single word being a phrase of one. 0: says nothing."""
LONGEST: Final = max(map(len, GRADES))
