"""How the words of tasks adjust their likeness beyond the cosine of their vectors.

A threshold alone cannot recognise templates: "Book a hotel room in Paris" and "in Oslo" have a
cosine of .73, "Enable dark mode" and "Disable dark mode" one of .96. So tasks that share a skeleton
(``domain.wording``) count as more alike, tasks with another action as less, and opposites as never
alike.

Skeletons are compared by hash, without aligning pairs of tasks: a task has at most about 1,300 of
them, and those that two tasks share are found by sorting them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.wording import LEAST_CONSTANT, LEAST_CONTENT, Wording, is_word, wording_of
from lot_grpc.lexical.contrast import Contradictions, read
from lot_grpc.services.time_slice import ThreadTimeSlice

SAME_TEMPLATE: Final = 0.2
"""How much more alike tasks are that share a skeleton."""

OTHER_ACTION: Final = 0.1
"""How much less alike tasks with another action are. Both were chosen on WebArena's tasks."""

_LONG_GAP: Final = 5
"""Tokens of a value at most, where a skeleton leaves out one."""

_SHORT_GAP: Final = 3
"""The same where it leaves out two."""

_MOST_FOR_TWO: Final = 18
"""Tokens of a task at most for skeletons that leave out two values."""

Floats = NDArray[np.float32]
_Ints = NDArray[np.intp]
_Keys = NDArray[np.uint64]
_NONE: Final = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one unit of clustering, each with the number of patterns it represents.

    ``fixed`` units are not compared with each other.
    """

    tasks: Sequence[tuple[str, int]]
    fixed: bool


def likeness_by_words(units: Sequence[Tasks]) -> Floats:
    """What is to be added to the similarity of each two units: the mean over all pairs of tasks.

    -inf for two of which any tasks are opposed. Takes a while: for a thread.
    """
    owners = np.array([n for n, unit in enumerate(units) for _ in unit.tasks], dtype=np.intp)
    weights = np.array([weight for unit in units for _, weight in unit.tasks], dtype=np.float64)
    fixed = np.array([unit.fixed for unit in units], dtype=np.bool_)
    thread_slice = ThreadTimeSlice()
    wordings, readings = [], []
    for unit in units:
        for task, _ in unit.tasks:
            wordings.append(wording_of(task))
            readings.append(read(task))
            thread_slice.pause()
    free = np.flatnonzero(~fixed[owners])
    templates = _Templates(wordings, free, thread_slice)
    opposites = Contradictions(readings)
    denies = np.array([bool(one.denied) for one in readings])
    actions = _numbered([" ".join(one.actions) for one in wordings])
    sizes = np.bincount(owners, weights, len(units))
    added = np.zeros((len(units), len(units)), dtype=np.float32)
    for at, others in opposites.of_each(free.tolist()):
        more = np.where(actions == actions[at], 0.0, -OTHER_ACTION)
        more[templates.shared_with(at)] += SAME_TEMPLATE
        more[others] = -np.inf
        more[denies != denies[at]] = -np.inf
        added[owners[at]] += weights[at] * np.bincount(owners, weights * more, len(units))
        thread_slice.pause()
    added /= sizes
    added[~fixed] /= sizes[~fixed, None]
    added[np.ix_(fixed, ~fixed)] = added[np.ix_(~fixed, fixed)].T
    return added


def _numbered(names: Sequence[str]) -> _Ints:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)


# --- templates --------------------------------------------------------------------------------


class _Templates:
    """Which tasks share a skeleton with one.

    Of tasks that are not ``free`` only those skeletons are kept that a free one has.
    """

    def __init__(
        self, wordings: Sequence[Wording], free: _Ints, thread_slice: ThreadTimeSlice
    ) -> None:
        ids = _numbered([token for one in wordings for token in one.tokens])
        values = np.random.default_rng(0).integers(1, 2**64, len(ids) + 1, dtype=np.uint64)[ids]
        starts = np.cumsum([0, *(len(one.tokens) for one in wordings)])
        is_free = np.zeros(len(wordings), dtype=np.bool_)
        is_free[free] = True
        known = np.zeros(0, dtype=np.uint64)
        found: list[tuple[_Keys, _Ints]] = []
        for which in (free, np.flatnonzero(~is_free)):
            for at in which:
                keys = _skeletons(wordings[at], values[starts[at] : starts[at + 1]])
                if not is_free[at]:
                    keys = keys[_within(keys, known)]
                found.append((keys, np.full(len(keys), at)))
                thread_slice.pause()
            if which is free and found:
                known = np.sort(np.concatenate([keys for keys, _ in found]))
        self._buckets: dict[int, list[_Ints]] = {}
        if found:
            self._fill(
                np.concatenate([keys for keys, _ in found]), np.concatenate([at for _, at in found])
            )

    def _fill(self, keys: _Keys, places: _Ints) -> None:
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        edges = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1, append=keys[-1:] - 1))
        seen = set()
        for start in np.flatnonzero(np.diff(edges) > 1):
            bucket = places[edges[start] : edges[start + 1]]
            if (name := bucket.tobytes()) not in seen:
                seen.add(name)
                for at in bucket.tolist():
                    self._buckets.setdefault(at, []).append(bucket)

    def shared_with(self, at: int) -> _Ints:
        """Tasks that share a skeleton with one, itself too if there are any; some repeatedly."""
        return np.concatenate([_NONE, *self._buckets.get(at, ())])


def _within(keys: _Keys, known: _Keys) -> NDArray[np.bool_]:
    """Which keys are among those that are known, which are in order."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    within: NDArray[np.bool_] = known[places] == keys
    return within


def _skeletons(wording: Wording, values: _Keys) -> _Keys:
    """The hashes of a task's skeletons; ``values`` represent its tokens.

    The action is never omitted. A hash is made of polynomials of the parts that are kept (Karp and
    Rabin, 1987), so none of them is read again for another gap.
    """
    count = len(values)
    starts, ends, starts2, ends2 = _gaps(count)
    words, content, actions = (
        counts[-1] - (counts[ends] - counts[starts]) - (counts[ends2] - counts[starts2])
        for counts in map(np.array, wording.counts())
    )
    word = np.array([*map(is_word, wording.tokens), True])
    fits = (
        word[starts]
        & word[ends - 1]
        & word[starts2]
        & word[ends2 - (starts2 < count)]
        & (words >= LEAST_CONSTANT * sum(word[:-1]))
        & (content >= LEAST_CONTENT)
        & (actions == len(wording.action_places))
    )
    starts, ends, starts2, ends2 = (one[fits] for one in (starts, ends, starts2, ends2))
    before = np.zeros(count + 1, dtype=np.uint64)
    np.cumsum(values * _POWERS[:count], out=before[1:])
    middle = (before[starts2] - before[ends]) * _INVERSES[ends]
    last = (before[count] - before[ends2]) * _INVERSES[ends2]
    two = (starts2 < count).astype(np.uint64)
    hashes: _Keys = before[starts] + middle * _MIX[0] + last * _MIX[1] + two
    return hashes


@lru_cache(maxsize=64)
def _gaps(count: int) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """Where one or two values may be omitted from this many tokens: starts and ends of both."""
    one = [
        (start, end, count, count)
        for start in range(1, count)
        for end in range(start + 1, min(count, start + _LONG_GAP) + 1)
    ]
    short = [gap[:2] for gap in one if gap[1] - gap[0] <= _SHORT_GAP]
    two = [(*a, *b) for a in short for b in short if b[0] > a[1]] if count <= _MOST_FOR_TWO else []
    columns = np.array(one + two, dtype=np.intp).reshape(-1, 4).T
    return columns[0], columns[1], columns[2], columns[3]


def _powers(base: int) -> _Keys:
    return np.array([pow(base, n, 2**64) for n in range(128)], dtype=np.uint64)


_BASE: Final = 0x9E3779B97F4A7C15
_POWERS: Final = _powers(_BASE)
_INVERSES: Final = _powers(pow(_BASE, -1, 2**64))
_MIX: Final = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
