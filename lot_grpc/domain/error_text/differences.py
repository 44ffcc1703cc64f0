"""How two errors with the same signature differ: in the parts that the signature omits.

A different module name means a different fix, a different line number mostly does not. So the parts
have different weights, and the agreement of two errors shows how likely they have the same fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final

from lot_grpc.domain.error_text.parts import LeftOut

_WEIGHTS: Final[Mapping[str, float]] = {"name": 1.0, "url": 0.5, "version": 0.3, "path": 0.3}
_LITTLE: Final = 0.05
"""Weight of a number, an address, an id or a time: these differ from case to case anyway."""

_PLACE_BEHIND: Final = re.compile(r"[:(]\d+(?:[:,]\d+)*\)?$")
_FOLDER_END: Final = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Difference:
    """A part that differs: its kind (``path``, ``name`` …), and its two texts."""

    part: str
    given: str
    stored: str


@dataclass(frozen=True, slots=True)
class Compared:
    """``differences`` in the order of the message. ``agreement`` in [0, 1]; 1: no difference."""

    differences: tuple[Difference, ...]
    agreement: float


def compared(given: Sequence[LeftOut], stored: Sequence[LeftOut]) -> Compared:
    """Compare the omitted parts of two errors with the same signature, one by one.

    Paths agree if their file names do, since folders depend on the machine; the difference is
    reported anyway. A part that only one error has is compared with "". If only a number or an
    address differs, the errors agree almost completely.
    """
    differences: list[Difference] = []
    weight_of_all = weight_of_others = 0.0
    for one, other in _pairs(given, stored):
        if one.part == other.part:
            weight, part = _WEIGHTS.get(one.part, _LITTLE), one.part
        else:
            weight, part = max(
                (_WEIGHTS.get(kind, _LITTLE), kind) for kind in (one.part, other.part)
            )
        weight_of_all += weight
        if one == other:
            continue
        if one.text != other.text:
            differences.append(Difference(part, one.text, other.text))
        if _core(one) != _core(other):
            weight_of_others += weight
    return Compared(_each_once(differences), 1.0 - weight_of_others / max(1.0, weight_of_all))


def _pairs(
    given: Sequence[LeftOut], stored: Sequence[LeftOut]
) -> Iterator[tuple[LeftOut, LeftOut]]:
    """Pairs of parts of the same kind at the same place; paired with "" if there is none."""
    kinds = [[one.part for one in parts] for parts in (given, stored)]
    if kinds[0] == kinds[1]:  # nearly always, and a matcher takes longer than all else here
        yield from zip(given, stored, strict=True)
        return
    if kinds[0] > kinds[1]:  # a matcher is not symmetric
        yield from ((one, other) for other, one in _pairs(stored, given))
        return
    for _, i, j, k, n in SequenceMatcher(None, kinds[0], kinds[1], autojunk=False).get_opcodes():
        for one, other in zip_longest(given[i:j], stored[k:n]):
            yield one or LeftOut(other.part, ""), other or LeftOut(one.part, "")


def _core(one: LeftOut) -> str:
    return (
        _FOLDER_END.split(_PLACE_BEHIND.sub("", one.text))[-1] if one.part == "path" else one.text
    )


def _each_once(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    return tuple(dict.fromkeys(differences))
