"""What several sequences have in common, in order, and the gaps between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def common(one: Sequence[T], other: Sequence[T]) -> list[T]:
    """A longest common subsequence; of several, the one whose items come first in ``one``."""
    return [one[at] for at, _ in _pairs(one, other)]


def common_to_all(sequences: Sequence[Sequence[T]]) -> list[T]:
    """Items that all have in one order: each sequence in turn is compared with what is left."""
    left = list(sequences[0]) if sequences else []
    for sequence in sequences[1:]:
        left = common(left, sequence)
    return left


def gaps(constant: Sequence[T], whole: Sequence[T]) -> list[tuple[int, int]]:
    """Where in ``whole`` the gaps lie: before each constant item, and after the last.

    ``constant`` is a subsequence of ``whole``; there is one gap more than it has items, each as
    (start, end), empty where start is end.
    """
    places = [at for _, at in _pairs(constant, whole)]
    starts = [0, *(at + 1 for at in places)]
    return list(zip(starts, [*places, len(whole)], strict=True))


def _pairs(one: Sequence[T], other: Sequence[T]) -> list[tuple[int, int]]:
    """Positions of a longest common subsequence in both. What both begin and end with is quick."""
    shorter = min(len(one), len(other))
    head = 0
    while head < shorter and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < shorter - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    within = _table(one[head : len(one) - tail], other[head : len(other) - tail])
    return [
        *((at, at) for at in range(head)),
        *((head + a, head + b) for a, b in within),
        *((len(one) - at, len(other) - at) for at in range(tail, 0, -1)),
    ]


def _table(one: Sequence[T], other: Sequence[T]) -> list[tuple[int, int]]:
    """By the table of Wagner and Fischer (1974), from the end: so it is read from the start."""
    if not one or not other:
        return []
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for a in range(len(one) - 1, -1, -1):
        row, below = table[a], table[a + 1]
        for b in range(len(other) - 1, -1, -1):
            row[b] = below[b + 1] + 1 if one[a] == other[b] else max(below[b], row[b + 1])
    pairs = []
    a = b = 0
    while a < len(one) and b < len(other):
        if one[a] == other[b] and table[a][b] == table[a + 1][b + 1] + 1:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif table[a + 1][b] >= table[a][b + 1]:
            a += 1
        else:
            b += 1
    return pairs
