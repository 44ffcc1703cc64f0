from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lot_grpc.services.distillation.clustering import Unit, clusters

LEVELS = st.sampled_from([0.2, 0.5, 0.8])


def unit_vectors(seed: int, count: int, dimensions: int = 6) -> NDArray[np.float32]:
    """Vectors in a few heaps, some of them equal."""
    rng = np.random.default_rng(seed)
    heaps = rng.normal(size=(4, dimensions))
    given = heaps[rng.integers(0, 4, count)] + rng.normal(scale=0.4, size=(count, dimensions))
    if count > 2:
        given[1] = given[0]
    found: NDArray[np.float32] = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype(
        np.float32
    )
    return found


def mean_similarity(vectors: NDArray[Any], one: list[int], other: list[int]) -> float:
    """Pair by pair, as the definition has it."""
    pairs = [float(vectors[a] @ vectors[b]) for a in one for b in other if a != b]
    return sum(pairs) / len(pairs)


async def of(vectors: NDArray[np.float32], level: float) -> list[list[int]]:
    return await clusters([Unit(vector) for vector in vectors], level)


@given(st.integers(0, 10_000), st.integers(1, 40), LEVELS)
async def test_each_is_in_one_cluster_and_no_two_clusters_are_alike(seed, count, level):
    vectors = unit_vectors(seed, count)
    found = await of(vectors, level)
    assert sorted(one for cluster in found for one in cluster) == list(range(count))
    for number, one in enumerate(found):
        for other in found[:number]:
            assert mean_similarity(vectors, one, other) < level + 1e-5
    assert found == await of(vectors, level), "the same every time"


@given(st.integers(0, 10_000), st.integers(1, 30), LEVELS)
async def test_it_is_what_merging_the_most_similar_two_comes_to(seed, count, level):
    """Against the definition, with all means taken anew after each merge."""
    vectors = unit_vectors(seed, count)[2:]
    left = [[number] for number in range(len(vectors))]
    while len(left) > 1:
        pairs = [(a, b) for b in range(len(left)) for a in range(b)]
        best = max(pairs, key=lambda pair: mean_similarity(vectors, left[pair[0]], left[pair[1]]))
        if mean_similarity(vectors, left[best[0]], left[best[1]]) < level:
            break
        left[best[0]] += left.pop(best[1])
    assert await of(vectors, level) == sorted(sorted(cluster) for cluster in left)


@given(st.integers(0, 10_000), st.integers(1, 40), LEVELS, st.integers(2, 4))
async def test_with_what_came_out_it_comes_to_the_same(seed, count, level, least):
    vectors = unit_vectors(seed, count)
    found = await of(vectors, level)
    groups = [cluster for cluster in found if len(cluster) >= least]
    loose = [one for cluster in found if len(cluster) < least for one in cluster]
    units = [Unit(vectors[group].mean(axis=0), len(group), fixed=True) for group in groups]
    again = await clusters([*units, *(Unit(vectors[one]) for one in loose)], level)
    for cluster in again:
        fixed = [one for one in cluster if one < len(groups)]
        assert len(fixed) <= 1, "groups are never merged"
        assert not (fixed and len(cluster) > 1), "nothing joins that was left out before"
        assert fixed or len(cluster) < least, "nothing new"


async def test_groups_that_are_there_take_in_others_and_are_never_merged():
    vector = np.array([1, 0], dtype=np.float32)
    units = [Unit(vector, 3, fixed=True), Unit(vector, 3, fixed=True), Unit(vector), Unit(vector)]
    found = await clusters(units, 0.9)
    assert sum(0 in c for c in found) == sum(1 in c for c in found) == 1
    assert len(found) == 2


async def test_nothing_has_no_clusters():
    assert await clusters([], 0.5) == []
