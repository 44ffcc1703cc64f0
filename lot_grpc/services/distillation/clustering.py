"""Groups of similar vectors: average-linkage agglomerative clustering (Sokal and Michener, 1958).

Two clusters are as similar as the mean cosine over all pairs between them, and the most similar
two are merged until none reaches the level. For unit vectors that mean is the dot product of the
clusters' mean vectors, so a cluster that is there already takes part by its mean and its size.
What else moves the similarity of two units is added to it (``likeness``); -inf keeps them apart.

Clusters that were made before (``fixed``) take in others and are never merged with each other. So
clustering again with what came out comes to the same: whatever was merged late is, seen from any
third cluster, the mean of parts that were all less similar than what was merged first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lot_grpc.services.time_slice import TimeSlice

_ROWS = 128
"""Rows compared with all others at once, in a thread: 5,000 of 384 numbers take some 10 ms."""

_TOLERANCE = 1e-6
"""How far below the level a similarity may lie: vectors have single precision."""

_NEVER = np.float32(-np.inf)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Unit:
    """An item to cluster: the mean of some unit vectors; ``fixed`` if it is a group already."""

    mean: Floats
    weight: int = 1
    fixed: bool = False


async def clusters(
    units: Sequence[Unit], level: float, added: Floats | None = None
) -> list[list[int]]:
    """Which units belong together, as positions in order; each unit is in just one cluster.

    ``added`` is added to the similarities of each two units. The order of the units decides between
    equal similarities. Gives way to other calls.
    """
    if not units:
        return []
    means = np.stack([unit.mean for unit in units])
    found = []
    near = await _near(means, level - _TOLERANCE, added)
    for part in await asyncio.to_thread(_components, near):
        if len(part) == 1:
            found.append([int(part[0])])
        else:
            chosen = [units[one] for one in part]
            found += [
                [int(part[one]) for one in members]
                for members in await _agglomerate(
                    await _similar(means, part, added), chosen, level - _TOLERANCE
                )
            ]
    return sorted(found)


async def _near(means: Floats, level: float, added: Floats | None) -> NDArray[np.bool_]:
    """Which pairs reach the level. Only what is joined by such pairs can ever be one cluster."""
    near = np.zeros((len(means), len(means)), dtype=np.bool_)

    def fill(start: int) -> None:
        rows = slice(start, start + _ROWS)
        similar = means[rows] @ means.T
        near[rows] = (similar if added is None else similar + added[rows]) >= level

    for start in range(0, len(means), _ROWS):
        await asyncio.to_thread(fill, start)
    return near


async def _similar(means: Floats, part: NDArray[np.intp], added: Floats | None) -> Floats:
    """The similarities between some units."""
    some = means[part]
    similar: Floats = await asyncio.to_thread(np.matmul, some, some.T)

    def add(start: int) -> None:
        assert added is not None
        similar[start : start + _ROWS] += added[np.ix_(part[start : start + _ROWS], part)]

    for start in range(0, len(part) if added is not None else 0, _ROWS):
        await asyncio.to_thread(add, start)
    return similar


def _components(near: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The connected parts, each in order."""
    left = np.ones(len(near), dtype=np.bool_)
    parts = []
    for start in range(len(near)):
        if not left[start]:
            continue
        reached = np.zeros(len(near), dtype=np.bool_)
        edge = np.array([start])
        while len(edge):
            reached[edge] = True
            edge = np.flatnonzero(near[edge].any(axis=0) & ~reached)
        left &= ~reached
        parts.append(np.flatnonzero(reached))
    return parts


async def _agglomerate(similar: Floats, units: Sequence[Unit], level: float) -> list[list[int]]:
    fixed = np.array([unit.fixed for unit in units])
    similar[np.ix_(fixed, fixed)] = _NEVER
    np.fill_diagonal(similar, _NEVER)
    weights = np.array([unit.weight for unit in units], dtype=np.float32)
    members: list[list[int]] = [[number] for number in range(len(units))]
    nearest = await asyncio.to_thread(similar.argmax, 1)
    best = similar[np.arange(len(units)), nearest]
    time_slice = TimeSlice(rest=1.0)
    while True:
        one = int(best.argmax())
        if best[one] < level:
            return [sorted(group) for group in members if group]
        other = int(nearest[one])
        one, other = min(one, other), max(one, other)
        row = (weights[one] * similar[one] + weights[other] * similar[other]) / (
            weights[one] + weights[other]
        )
        row[one] = _NEVER
        similar[one], similar[:, one] = row, row
        similar[other], similar[:, other] = _NEVER, _NEVER
        weights[one] += weights[other]
        members[one] += members[other]
        members[other] = []
        best[other] = _NEVER
        # Only rows whose nearest was one of the two can have changed: a mean is never above both.
        for changed in np.flatnonzero((nearest == one) | (nearest == other)):
            if members[changed]:
                nearest[changed] = similar[changed].argmax()
                best[changed] = similar[changed, nearest[changed]]
        nearest[one] = row.argmax()
        best[one] = row[nearest[one]]
        await time_slice.give_way()
