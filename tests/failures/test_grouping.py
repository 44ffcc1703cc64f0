"""300 recorded episodes with six planted causes, each told in many words: the six groups."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Sequence

import pytest

from lot_grpc.domain.extraction.digest import ErrorSeen
from lot_grpc.domain.failures.failure import Failure, signature_or_none
from lot_grpc.domain.failures.named import named_kinds
from lot_grpc.domain.failures.wording import plain_words
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.testing.hashing import HashingEmbedder
from tests.failures.causes import DEVELOPMENT, Causes
from tests.failures.held_out import HELD_OUT
from tests.failures.made import SILENT, filled, planted, quality
from tests.failures.mixed import DATABASE_TIMEOUTS, DEV, HELD, RATE_LIMITS
from tests.failures.running import analyze, judged, open_planted
from tests.failures.second import SECOND
from tests.services.world import World, open_world

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


@pytest.fixture
async def world() -> World:
    return await open_world()


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


@pytest.mark.model
@pytest.mark.parametrize(
    ("many", "few"), [(RATE_LIMITS, DATABASE_TIMEOUTS), (DATABASE_TIMEOUTS, RATE_LIMITS)]
)
async def test_five_rate_limits_and_two_database_timeouts_are_not_mixed(model, many, few):
    world = await open_world(embedder=model)
    chance = random.Random(5)
    for _ in range(15):
        drawn = chance.sample(many, 5), chance.sample(few, 2)
        failures = [*_failures("many", drawn[0]), *_failures("few", drawn[1])]
        assert _pure((await world.services.episodes.failures.parted(failures)).parts), drawn


@pytest.mark.model
@pytest.mark.parametrize("causes", [DEV, HELD, {**DEV, **HELD}], ids=["dev", "held", "all"])
async def test_kinds_of_failures_are_not_mixed(model, causes):
    episodes = planted(causes, seed=1, each=4, silent=0, good=0)
    found = await judged(await open_planted(model, episodes), episodes)
    assert found.purity == 1.0
    assert found.least_complete >= 0.5
    assert found.groups <= 1.3 * len(causes)


@pytest.mark.model
@pytest.mark.parametrize(
    "share", [pytest.param(1, marks=pytest.mark.exhaustive), pytest.param(9, id="sample")]
)
async def test_no_two_kinds_alone_are_mixed(model, share):
    chance = random.Random(1)
    told = {
        cause: [filled(f"{kind}: {text}" if kind else text, chance) for kind, text in ways]
        for cause, ways in {**DEV, **HELD}.items()
    }
    world = await open_world(embedder=model)
    for one, other in [*itertools.permutations(told, 2)][::share]:
        failures = [*_failures(one, told[one]), *_failures(other, told[other][:2])]
        assert _pure((await world.services.episodes.failures.parted(failures)).parts), (one, other)


async def test_errors_that_name_other_kinds_are_apart_at_any_level(world):
    failures = [*_failures("limit", RATE_LIMITS), *_failures("database", DATABASE_TIMEOUTS[:3])]
    failures += _failures("", ["something else went wrong"])
    parted = await world.services.episodes.failures.parted(failures, 0.0)
    kinds = [{failure.episode_id.split("-")[0] for failure in part} for part in parted.parts]
    assert not any({"limit", "database"} <= kind for kind in kinds)


@pytest.mark.parametrize(
    ("kind", "message", "names"),
    [
        ("", "429 Too Many Requests from api", {"rate limit"}),
        ("RateLimitError", "wait", {"rate limit"}),
        ("", "could not obtain connection within 30s", {"time-out"}),
        ("Error", "connect ETIMEDOUT 10.0.0.1:443", {"time-out"}),
        ("Error", "ENOSPC, write", {"disk"}),
        ("", "disk quota exceeded for billing", {"disk"}),
        ("", "request timed out after the rate limit was met", {"rate limit", "time-out"}),
        ("", "the room is booked", set()),
        ("", "", set()),
    ],
)
def test_kinds_that_an_error_names(kind, message, names):
    assert named_kinds(plain_words(kind, message), message) == names


def _failures(name: str, messages: Sequence[str]) -> list[Failure]:
    errors = [ErrorSeen(message=message) for message in messages]
    return [
        Failure(f"{name}-{n}", n, error, signature_or_none(error)) for n, error in enumerate(errors)
    ]


def _pure(parts: Sequence[Sequence[Failure]]) -> bool:
    return all(len({one.episode_id.rsplit("-", 1)[0] for one in part}) == 1 for part in parts)


def test_quality_tells_mixed_and_split_groups():
    cause_of = {"1": "a", "2": "a", "3": "b", "4": "b", "5": SILENT}
    good = quality([["1", "2"], ["3", "4"], ["5"]], cause_of)
    assert (good.groups, good.purity, good.least_pure, good.least_complete) == (2, 1, 1, 1)
    mixed = quality([["1", "2", "3"], ["4", "5"]], cause_of)
    assert mixed.purity == pytest.approx(3 / 5)
    assert mixed.least_pure == 0.5
    assert quality([["1"], ["2"], ["3", "4"]], cause_of).least_complete == 0.5
