"""Queries meet LEARNED patterns by their regular expressions."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.pattern import PatternContent, PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services import learned_tasks
from lot_grpc.services.patterns import PatternEdit
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_conditions, pattern_point
from tests.services.world import NS, open_world, save

LEARNED = PatternKind.LEARNED


async def learned(world, regex, **named):
    kind = named.pop("kind", LEARNED)
    saved = await save(world, f"task of {regex}", kind=kind, task_type_pattern=regex, **named)
    return pattern_point(NS, saved.pattern.pattern_id)


async def test_learned_patterns_whose_regex_matches_are_found_case_insensitively():
    world = await open_world()
    login = await learned(world, "log.?in")
    await learned(world, "deploy")
    await learned(world, "log.?in", kind=PatternKind.TASK)  # just LEARNED ones have a say
    await save(world, "log in", kind=LEARNED)
    found = await world.services.learned_tasks.matching(NS, "Add a LOG-IN page", [])
    assert found == {login}
    assert await world.services.learned_tasks.matching("other", "Add a LOG-IN page", []) == set()


async def test_the_callers_conditions_hold():
    world = await open_world()
    await learned(world, "log", language="go")
    python = await learned(world, "login", language="python")
    where = pattern_conditions(PatternFilter(languages=("py",)))
    assert await world.services.learned_tasks.matching(NS, "login", where) == {python}


async def test_the_newest_are_tried(monkeypatch):
    monkeypatch.setattr(learned_tasks, "MOST_TRIED", 2)
    world = await open_world()
    points = [await learned(world, f"log{'.?' * number}in") for number in range(4)]
    assert await world.services.learned_tasks.matching(NS, "login", []) == set(points[2:])


async def test_a_regex_of_an_older_store_that_re2_refuses_matches_nothing_and_can_be_mended():
    world = await open_world()
    good = await learned(world, "log")
    saved = await save(world, "old", kind=LEARNED, task_type_pattern="x")
    pattern_id = saved.pattern.pattern_id
    point = pattern_point(NS, pattern_id)
    await world.store.update(PATTERNS, NS, point, set={"task_type_pattern": "(?<=a)log"})
    assert await world.services.learned_tasks.matching(NS, "log", []) == {good}

    async def edit(**changes):
        wanted = PatternEdit(PatternContent("unused", **changes), frozenset(changes))
        return await world.services.patterns.update(NS, pattern_id, wanted, "")

    await edit(title="Its regex is not looked at when something else is edited")
    with pytest.raises(RequestInvalidError):
        await edit(task_type_pattern="(?<=b)log")
    await edit(task_type_pattern="logs?")
    assert await world.services.learned_tasks.matching(NS, "log", []) == {good, point}
