"""The signs that episodes show: terms, tools, approaches, steps and short sequences of steps.

A sign's column is an integer with a one for each episode that shows it, by its place in a list.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from lot_grpc.domain.extraction.digest import Digest

_RARE_SHARE = 0.02
_RARE_COUNT = 2
"""A sign that fewer episodes show, or fewer do not, is none."""


class SignKind(IntEnum):
    """The kind of a sign. Of two equivalent signs, the lower kind is reported."""

    TOOL = 1
    APPROACH = 2
    TERM = 3
    STEP = 4
    TWO_STEPS = 5
    THREE_STEPS = 6


Name = tuple[SignKind, tuple[str, ...]]


@dataclass(slots=True)
class Sign:
    """A sign. ``below``: the simpler signs that it contains. ``p``: its p-value."""

    kind: SignKind
    parts: tuple[str, ...]
    column: int
    p: float = 1.0
    below: tuple[Name, ...] = ()

    @property
    def name(self) -> Name:
        """Its name, which identifies it."""
        return self.kind, self.parts

    def related(self, other: Sign) -> bool:
        """Whether one is a part of the other, or both are sequences that share a part."""
        mine, its = {self.name, *self.below}, {other.name, *other.below}
        return not mine.isdisjoint(its)


def signs_of(digests: Sequence[Digest], pause: Callable[[], None]) -> list[Sign]:
    """Every sign that enough episodes show and enough others do not."""
    least = max(_RARE_COUNT, math.ceil(len(digests) * _RARE_SHARE))
    singles = _columns((_single_names(one) for one in digests), least, len(digests), pause)
    steps = {parts for kind, parts in singles if kind is SignKind.STEP}
    pairs = _columns((_pairs(one, steps) for one in digests), least, len(digests), pause)
    both = {parts for _, parts in pairs}
    triples = _columns((_triples(one, both) for one in digests), least, len(digests), pause)
    return [
        Sign(kind, parts, column, below=tuple(_below(kind, parts)))
        for (kind, parts), column in {**singles, **pairs, **triples}.items()
        if len(digests) - column.bit_count() >= least
    ]


def _single_names(digest: Digest) -> set[Name]:
    names: set[Name] = {(SignKind.TOOL, (tool,)) for tool in digest.tools}
    names |= {(SignKind.TERM, (term,)) for term in digest.terms}
    if digest.approach:
        names.add((SignKind.APPROACH, (digest.approach,)))
    for run in digest.runs():
        names |= {(SignKind.STEP, (step.name,)) for step in run}
        names |= {(SignKind.TOOL, (step.tool,)) for step in run if step.tool}
    return names


def _pairs(digest: Digest, steps: set[tuple[str, ...]]) -> set[Name]:
    return {
        (SignKind.TWO_STEPS, (one.name, two.name))
        for run in digest.runs()
        for one, two in pairwise(run)
        if (one.name,) in steps and (two.name,) in steps
    }


def _triples(digest: Digest, pairs: set[tuple[str, ...]]) -> set[Name]:
    return {
        (SignKind.THREE_STEPS, (one.name, two.name, three.name))
        for run in digest.runs()
        for one, two, three in zip(run, run[1:], run[2:], strict=False)
        if (one.name, two.name) in pairs and (two.name, three.name) in pairs
    }


def _below(kind: SignKind, parts: tuple[str, ...]) -> Iterable[Name]:
    """The simpler signs that a sequence contains."""
    if kind is SignKind.THREE_STEPS:
        yield SignKind.TWO_STEPS, parts[:2]
        yield SignKind.TWO_STEPS, parts[1:]
    if kind in (SignKind.TWO_STEPS, SignKind.THREE_STEPS):
        for part in parts:
            yield SignKind.STEP, (part,)
            if part.endswith(")"):
                yield SignKind.TOOL, (part.partition("(")[2][:-1],)
    elif kind is SignKind.STEP and parts[0].endswith(")"):
        yield SignKind.TOOL, (parts[0].partition("(")[2][:-1],)


def _columns(
    named: Iterable[set[Name]], least: int, total: int, pause: Callable[[], None]
) -> dict[Name, int]:
    """The episodes of each name that enough of them show."""
    shown: dict[Name, list[int]] = defaultdict(list)
    for number, names in enumerate(named):
        for name in names:
            shown[name].append(number)
        pause()
    columns = {}
    for name in sorted(shown):
        if len(shown[name]) >= least:
            flags = bytearray(total // 8 + 1)
            for number in shown[name]:
                flags[number >> 3] |= 1 << (number & 7)
            columns[name] = int.from_bytes(flags, "little")
            pause()
    return columns


def distinct(signs: Iterable[Sign]) -> list[Sign]:
    """Without those that show where a simpler one that they hold shows, and nowhere else."""
    simpler: dict[Name, int] = {}
    kept = []
    for sign in sorted(signs, key=lambda sign: sign.name):
        simpler[sign.name] = sign.column
        if all(simpler.get(name) != sign.column for name in sign.below):
            kept.append(sign)
    return kept
