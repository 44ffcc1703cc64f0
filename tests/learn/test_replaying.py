from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.learn.made import TASKS
from tests.learn.replaying import Course, look, replay
from tests.learn.tasks import carried_set
from tests.learn.worlds import Chances, Trial, drawn


@dataclass
class Fixed:
    """Always takes the same pattern, and keeps what it is told."""

    pattern: int | None = 0
    told: list[tuple[int, int, bool]] = field(default_factory=list)
    answered: int = 0

    async def first(self, query: int, seed: int) -> int | None:
        self.answered += 1
        return self.pattern

    async def took(self, query: int, seed: int) -> int | None:
        return await self.first(query, seed)

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        self.told.append((query, pattern, success))


def trial(before: float, after: float) -> Trial:
    chances = [Chances(TASKS, (chance,) * 3) for chance in (before, after)]
    return Trial(7, (0, 1), (2, 3), *chances)


def told_nothing(done: int) -> None:
    """No progress to show."""


async def test_an_ask_succeeds_by_the_chance_of_what_is_taken():
    learner = Fixed()
    await replay(trial(1.0, 0.0), learner, Course(40), told_nothing)
    assert len(learner.told) == 40
    assert {query for query, _, _ in learner.told} == {0, 1}
    assert all(success for _, _, success in learner.told)
    wrong = Fixed(pattern=2)
    await replay(trial(1.0, 0.0), wrong, Course(40), told_nothing)
    assert not any(success for _, _, success in wrong.told)


async def test_the_share_of_coins_that_fall_well_is_near_the_chance():
    learner = Fixed()
    await replay(trial(0.3, 0.0), learner, Course(2_000), told_nothing)
    assert 0.25 < sum(success for _, _, success in learner.told) / 2_000 < 0.35


async def test_the_chances_change_in_the_middle():
    learner = Fixed()
    points = await replay(
        trial(1.0, 0.0), learner, Course(10, change_at=4, looks=(0, 4, 5)), told_nothing
    )
    assert [success for _, _, success in learner.told] == [True] * 4 + [False] * 6
    assert [(point.asks, point.asked) for point in points] == [(0, 1.0), (4, 1.0), (5, 0.0)]


async def test_a_look_tells_nothing_and_takes_the_mean_of_its_samples():
    learner = Fixed()
    point = await look(trial(0.4, 0.0), learner, trial(0.4, 0.0).before, 3, samples=5)
    assert learner.told == []
    assert learner.answered == 4 * 5
    assert point.asks == 3
    assert (point.asked, point.never) == pytest.approx((0.4, 0.0))


async def test_nothing_found_is_no_success_and_nothing_to_tell_of():
    learner = Fixed(pattern=None)
    [point] = await replay(trial(1.0, 1.0), learner, Course(5, looks=(5,)), told_nothing)
    assert learner.told == []
    assert (point.asked, point.never) == (0.0, 0.0)


async def test_every_learner_is_asked_the_same():
    tasks = carried_set()
    first, second = Fixed(pattern=0), Fixed(pattern=1)
    for learner in (first, second):
        await replay(drawn(tasks, 5), learner, Course(30), told_nothing)
    assert [query for query, _, _ in first.told] == [query for query, _, _ in second.told]


async def test_progress_is_told():
    done: list[int] = []
    await replay(trial(1.0, 1.0), Fixed(), Course(3), done.append)
    assert done == [1, 2, 3]
