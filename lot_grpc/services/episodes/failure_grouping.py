"""Groups errors by meaning: by average linkage, then the few with an unusual wording.

Errors that name different kinds of failures are never in one group.

The thresholds were measured with the default model on the errors of ``tests/failures``; another
model has other similarities, though subtracting the common mean makes them comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from lot_grpc.services.distillation.clustering import Unit, clusters
from lot_grpc.services.episodes.failure_landscape import Floats

LEVEL: Final = 0.14
"""Two groups merge from this mean similarity on."""

ODD_LEVEL: Final = 0.1
"""From this similarity on, a rare wording joins a larger group that is clearly the nearest."""

ODD_SHARE: Final = 0.5
"""Maximum size of a rare wording, relative to the group that it joins."""

ODD_MARGIN: Final = 0.05
"""How much nearer that group must be than the next larger one."""


async def grouped(
    vectors: Floats,
    counts: Sequence[int],
    level: float | None = None,
    named: Sequence[AbstractSet[str]] = (),
) -> list[list[int]]:
    """The groups of errors, as positions in order; each error is in exactly one.

    ``counts``: how many failures each error has. The order breaks ties. ``level`` replaces
    ``LEVEL``; then rare wordings stay separate too. ``named``: the kinds that each error names.
    """
    added = _apart(named or [frozenset()] * len(vectors))
    units = [Unit(vector) for vector in vectors]
    groups = await clusters(units, LEVEL if level is None else level, added)
    if len(groups) < 2 or level is not None:
        return groups
    goes_to = _odd_ones(vectors, added, counts, groups)
    joined = {at: list(group) for at, group in enumerate(groups) if at not in goes_to}
    for odd, to in goes_to.items():
        while to in goes_to:  # larger each time
            to = goes_to[to]
        joined[to] += groups[odd]
    return sorted(sorted(group) for group in joined.values())


def _apart(named: Sequence[AbstractSet[str]]) -> Floats:
    """-inf for each pair of errors that both name kinds, but none in common."""
    added = np.zeros((len(named), len(named)), dtype=np.float32)
    holders: dict[AbstractSet[str], list[int]] = {}
    for at, kinds in enumerate(named):
        holders.setdefault(kinds, []).append(at)
    for kinds, ours in holders.items():
        for others, theirs in holders.items():
            if kinds and others and kinds.isdisjoint(others):
                added[np.ix_(ours, theirs)] = -np.inf
    return added


def _odd_ones(
    vectors: Floats, added: Floats, counts: Sequence[int], groups: Sequence[Sequence[int]]
) -> dict[int, int]:
    """Which group joins which other one, after average linkage."""
    means = np.stack([vectors[group].mean(axis=0) for group in groups])
    sizes = np.array([sum(counts[one] for one in group) for group in groups])
    goes_to = {}
    for odd in range(len(groups)):
        larger = np.flatnonzero(sizes * ODD_SHARE >= sizes[odd])
        if not len(larger):
            continue
        near = means[larger] @ means[odd]
        apart = [np.isneginf(added[groups[odd]][:, groups[int(one)]]).any() for one in larger]
        near[apart] = -np.inf
        best = int(near.argmax())
        next_best = np.delete(near, best).max(initial=-1.0)
        if near[best] >= ODD_LEVEL and near[best] - next_best >= ODD_MARGIN:
            goes_to[odd] = int(larger[best])
    return goes_to
