"""Finds what a majority did, in order."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

_LONGEST = 30
_BEAM = 8
_TOKENS = 40


def common_sequence(
    runs: Sequence[Sequence[str]], pause: Callable[[], None] = lambda: None
) -> tuple[list[str], int]:
    """The longest sequence that a majority contains, with gaps allowed, and how many do.

    Sought with a beam: of all sequences of one length the ``_BEAM`` that most contain go on, of
    equal ones that which ends earlier. At most ``_LONGEST`` long; the same runs in another order
    give the same answer. ``pause`` is called between pieces.
    """
    majority = len(runs) // 2 + 1
    places = [_places(run) for run in runs]
    counts = Counter(token for place in places for token in place)
    tokens = sorted(
        (token for token, count in counts.items() if count >= majority),
        key=lambda token: (-counts[token], token),
    )[:_TOKENS]
    beam: list[tuple[tuple[str, ...], dict[int, int]]] = [((), dict.fromkeys(range(len(runs)), -1))]
    best: tuple[tuple[str, ...], int] = ((), 0)
    for _ in range(_LONGEST):
        longer: dict[tuple[str, ...], dict[int, int]] = {}
        for sequence, ends in beam:
            for token in tokens:
                reached = _extended(places, ends, token)
                if len(reached) >= majority:
                    longer[(*sequence, token)] = reached
                pause()
        if not longer:
            break
        beam = sorted(longer.items(), key=_rank)[:_BEAM]
        best = (beam[0][0], len(beam[0][1]))
    return list(best[0]), best[1]


def _places(run: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for at, token in enumerate(run):
        places[token].append(at)
    return places


def _extended(
    places: Sequence[dict[str, list[int]]], ends: dict[int, int], token: str
) -> dict[int, int]:
    """Where each run that has the sequence has the token behind it first."""
    reached = {}
    for number, end in ends.items():
        at = places[number].get(token)
        if at is not None and (index := bisect_right(at, end)) < len(at):
            reached[number] = at[index]
    return reached


def _rank(one: tuple[tuple[str, ...], dict[int, int]]) -> tuple[int, float, tuple[str, ...]]:
    sequence, ends = one
    return -len(ends), sum(ends.values()) / len(ends), sequence
