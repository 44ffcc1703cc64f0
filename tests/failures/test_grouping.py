"""300 recorded episodes with six planted causes, each told in many words: the six groups."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.embedding.hashing import HashingEmbedder
from tests.failures.causes import DEVELOPMENT, Causes
from tests.failures.held_out import HELD_OUT
from tests.failures.made import SILENT, planted, quality
from tests.failures.running import analyze, judged, open_planted
from tests.failures.second import SECOND

SIMPLE: Causes = {
    "file": (
        ("FileNotFoundError", "[Errno 2] No such file or directory: '{path}'"),
        ("", "FileNotFoundError: [Errno 2] No such file or directory: '{path}'"),
    ),
    "limit": (
        ("RateLimitError", "rate limit of {n} calls exceeded on {host}"),
        ("", "RateLimitError: the rate limit of {m} calls is exceeded on {host}"),
    ),
    "merge": (
        ("", "Automatic merge failed; fix conflicts in {path} and commit the result"),
        ("", "Automatic merge of {path} failed; fix conflicts and commit the result"),
    ),
}
"""Told with the same words, which is all that the hashing embedder compares."""


@pytest.fixture
async def model() -> AsyncIterator[FastembedEmbedder]:
    embedder = await open_fastembed()
    yield embedder
    await embedder.close()


@pytest.mark.model
@pytest.mark.parametrize(("causes", "pure"), [(DEVELOPMENT, 1.0), (SECOND, 0.95)])
async def test_six_causes_told_in_other_words_are_six_groups(model, causes, pure):
    episodes = planted(causes, seed=1)
    assert len(episodes) == 300
    world = await open_planted(model, episodes)
    found = await judged(world, episodes)
    assert found.groups == 6
    assert found.purity >= pure
    assert found.least_complete >= 0.9
    analysis = await analyze(world)
    assert (analysis.failed_count, analysis.analyzed_count, analysis.group_count) == (252, 252, 7)
    silent = [group for group in analysis.groups if not group.signature]
    assert [group.count for group in silent] == [12]


@pytest.mark.model
async def test_causes_that_nothing_was_tuned_on_are_hardly_mixed(model):
    episodes = planted(HELD_OUT, seed=1)
    found = await judged(await open_planted(model, episodes), episodes)
    assert found.purity >= 0.95


async def test_causes_told_with_the_same_words_are_groups_without_a_model():
    episodes = planted(SIMPLE, seed=1, each=20, silent=4, good=10)
    world = await open_planted(HashingEmbedder(), episodes)
    found = await judged(world, episodes)
    assert (found.groups, found.purity, found.least_complete) == (3, 1.0, 1.0)
    groups = (await analyze(world)).groups
    assert sorted(group.count for group in groups) == [4, 20, 20, 20]
    assert sum(group.share for group in groups) == pytest.approx(1)
    assert sum(group.trend.slope for group in groups) == pytest.approx(0)


async def test_the_same_failures_give_the_same_groups_in_whatever_order_they_came():
    episodes = planted(SIMPLE, seed=1, each=20, silent=4, good=10)
    one = await analyze(await open_planted(HashingEmbedder(), episodes))
    other = await analyze(await open_planted(HashingEmbedder(), episodes[::-1]))
    assert one == other


def test_quality_tells_mixed_and_split_groups():
    cause_of = {"1": "a", "2": "a", "3": "b", "4": "b", "5": SILENT}
    good = quality([["1", "2"], ["3", "4"], ["5"]], cause_of)
    assert (good.groups, good.purity, good.least_pure, good.least_complete) == (2, 1, 1, 1)
    mixed = quality([["1", "2", "3"], ["4", "5"]], cause_of)
    assert mixed.purity == pytest.approx(3 / 5)
    assert mixed.least_pure == 0.5
    assert quality([["1"], ["2"], ["3", "4"]], cause_of).least_complete == 0.5
