"""ListEpisodes: filters together, by pages, and times at their edges."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from tests.server.episodes import FAILED, RUNNING, START, SUCCEEDED, listed, started
from tests.server.service import Lot
from tests.server.wire import failure

MICRO = timedelta(microseconds=1)
STATUSES = {SUCCEEDED: "well", FAILED: "badly", RUNNING: "on"}
CATEGORIES, TYPES, TASKS = ("backend", "frontend"), ("api", "api.v2"), ("T-1", "T-10")


def name_of(status: int, category: str, task_type: str, task_id: str) -> str:
    return f"{STATUSES[status]}-{category}-{task_type}-{task_id}"


async def fill(lot: Lot) -> list[str]:
    """One episode of each combination; their names, newest first."""
    names = []
    for status, category, task_type, task_id in product(STATUSES, CATEGORIES, TYPES, TASKS):
        name = name_of(status, category, task_type, task_id)
        fields = {"category": category, "task_type": task_type, "task_id": task_id}
        if status == RUNNING:
            await started(lot, name, episode_id=name, start_time=START, **fields)
        else:
            episode = {"task": name, "status": status, "start_time": START, **fields}
            await lot.episodes.RecordEpisode(episode=episode, episode_id=name)
        names.append(name)
    return names[::-1]


async def by_pages(lot: Lot, size: int, **requested: Any) -> list[str]:
    seen: list[str] = []
    token = ""
    while True:
        page = await lot.episodes.ListEpisodes(page_size=size, page_token=token, **requested)
        assert len(page.episodes) <= size
        seen += [one.episode_id for one in page.episodes]
        token = page.next_page_token
        if not token:
            return seen


async def test_filters_hold_together_and_any_value_of_each_will_do(lot):
    names = await fill(lot)
    for statuses, categories, types, tasks in product(
        ([], [SUCCEEDED], [FAILED, RUNNING]), ([], ["backend"]), ([], ["api.v2"]), ([], ["T-1"])
    ):
        wanted = {
            name_of(*one)
            for one in product(
                statuses or STATUSES, categories or CATEGORIES, types or TYPES, tasks or TASKS
            )
        }
        requested = {
            "statuses": statuses,
            "categories": categories,
            "task_types": types,
            "task_ids": tasks,
            "started_after": START - MICRO,
            "started_before": START + MICRO,
        }
        assert await listed(lot, filter=requested) == [name for name in names if name in wanted]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12, 24, 100])
async def test_a_filtered_list_is_the_same_by_pages_of_any_size(lot, size):
    names = await fill(lot)
    requested = {"statuses": [FAILED, RUNNING], "categories": ["frontend"]}
    wanted = [n for n in names if "frontend" in n and not n.startswith("well")]
    assert await by_pages(lot, size, filter=requested) == wanted
    assert await by_pages(lot, size) == names


async def test_what_is_started_or_deleted_between_pages_moves_nothing(lot):
    names = await fill(lot)
    first = await lot.episodes.ListEpisodes(page_size=5)
    await started(lot, episode_id="newer")
    await lot.episodes.DeleteEpisode(episode_id=names[7])
    rest = await lot.episodes.ListEpisodes(page_size=1000, page_token=first.next_page_token)
    seen = [one.episode_id for one in (*first.episodes, *rest.episodes)]
    assert seen == [name for name in names if name != names[7]]


async def test_a_page_goes_on_for_the_same_filter_only(lot):
    await fill(lot)
    requested = {"statuses": [FAILED]}
    token = (await lot.episodes.ListEpisodes(page_size=2, filter=requested)).next_page_token
    other = {"statuses": [FAILED], "ended_after": START}
    failed = await failure(lot.episodes.ListEpisodes(page_size=2, filter=other, page_token=token))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "PAGE_TOKEN_MISMATCH")


async def ended(lot: Lot, name: str, at: datetime) -> None:
    episode = {"task": "t", "status": SUCCEEDED, "start_time": at, "end_time": at}
    await lot.episodes.RecordEpisode(episode=episode, episode_id=name)


@pytest.mark.parametrize("kind", ["started", "ended"])
async def test_bounds_of_time_are_exclusive_to_the_microsecond(lot, kind):
    for name, at in (("a", START - MICRO), ("b", START), ("c", START + MICRO)):
        await ended(lot, name, at)
    after, before = f"{kind}_after", f"{kind}_before"
    for requested, wanted in (
        ({after: START}, ["c"]),
        ({after: START - MICRO}, ["c", "b"]),
        ({before: START}, ["a"]),
        ({before: START + MICRO}, ["b", "a"]),
        ({after: START - MICRO, before: START + MICRO}, ["b"]),
        ({after: START, before: START}, []),
        ({after: START + MICRO, before: START - MICRO}, []),
    ):
        assert await listed(lot, filter=requested) == wanted


async def test_a_running_episode_has_no_end_to_be_found_by(lot):
    await started(lot, episode_id="e", start_time=START)
    for requested in ({"ended_after": START}, {"ended_before": START + timedelta(days=99_999)}):
        assert await listed(lot, filter=requested) == []
    await lot.episodes.EndEpisode(episode_id="e", status=FAILED, end_time=START + MICRO)
    assert await listed(lot, filter={"ended_after": START}) == ["e"]


@pytest.mark.parametrize("name", ["started_after", "started_before", "ended_after", "ended_before"])
async def test_a_time_out_of_range_is_refused(lot, name):
    for seconds in (-(2**40), 2**40):
        failed = await failure(lot.episodes.ListEpisodes(filter={name: {"seconds": seconds}}))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
        assert set(failed.fields) == {f"filter.{name}"}
