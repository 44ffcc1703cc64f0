"""Queries meet LEARNED patterns by their regular expressions."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.pattern import PatternContent, PatternKind
from lot_grpc.domain.query import PatternFilter, Ranking
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.regexes import compiled
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.recall import learned_tasks
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_conditions, pattern_point
from tests.services.world import NS, open_world, outcome, recall, save

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
    found = await world.services.recall.learned_tasks.matching(NS, ("Add a LOG-IN page",), [])
    assert found == {login}
    assert (
        await world.services.recall.learned_tasks.matching("other", ("Add a LOG-IN page",), [])
        == set()
    )


async def test_the_callers_conditions_hold():
    world = await open_world()
    await learned(world, "log", language="go")
    python = await learned(world, "login", language="python")
    where = pattern_conditions(PatternFilter(languages=("py",)))
    assert await world.services.recall.learned_tasks.matching(NS, ("login",), where) == {python}


async def test_the_newest_are_tried(monkeypatch):
    monkeypatch.setattr(learned_tasks, "MOST_TRIED", 2)
    world = await open_world()
    points = [await learned(world, f"log{'.?' * number}in") for number in range(4)]
    assert await world.services.recall.learned_tasks.matching(NS, ("login",), []) == set(points[2:])


async def test_as_many_regexes_as_are_tried_are_compiled_once():
    texts = [f"log{number}" for number in range(learned_tasks.MOST_TRIED)]
    for text in texts:
        compiled(text)
    before = compiled.cache_info().misses
    for text in texts:
        compiled(text)
    assert compiled.cache_info().misses == before


async def test_a_regex_of_an_older_store_that_re2_refuses_matches_nothing_and_can_be_mended():
    world = await open_world()
    good = await learned(world, "log")
    saved = await save(world, "old", kind=LEARNED, task_type_pattern="x")
    pattern_id = saved.pattern.pattern_id
    point = pattern_point(NS, pattern_id)
    await world.store.update(PATTERNS, NS, point, set={"task_type_pattern": "(?<=a)log"})
    assert await world.services.recall.learned_tasks.matching(NS, ("log",), []) == {good}

    async def edit(**changes):
        wanted = PatternEdit(PatternContent("unused", **changes), frozenset(changes))
        return await world.services.patterns.patterns.update(NS, pattern_id, wanted, "")

    await edit(title="Its regex is not looked at when something else is edited")
    with pytest.raises(RequestInvalidError):
        await edit(task_type_pattern="(?<=b)log")
    await edit(task_type_pattern="logs?")
    assert await world.services.recall.learned_tasks.matching(NS, ("log",), []) == {good, point}


# --- in recall ----------------------------------------------------------------------------------

QUERY = "reset the password of the reader in the library"


async def for_tasks(world, task: str, regex: str, **named) -> str:
    saved = await save(world, task, kind=LEARNED, task_type_pattern=regex, **named)
    return saved.pattern.pattern_id


async def found(world, query: str = QUERY, **asked):
    hits = (await recall(world, query, explain=True, **asked)).hits
    return {hit.thing.pattern_id: hit for hit in hits}, [hit.thing.pattern_id for hit in hits]


async def test_a_pattern_whose_expression_matches_is_a_near_tie_whatever_its_words(world):
    for n in range(3):
        await save(world, f"{QUERY} {n}")
    for n in range(60):
        await save(world, f"the library {n}")
    mine = await for_tasks(world, "carry out account tasks", "password")
    other = await for_tasks(world, "carry out garden tasks", "garden")
    hits, order = await found(world, limit=10)
    assert mine in order[:4]
    assert other not in order
    assert "task_type_pattern" in [part.name for part in hits[mine].parts]
    total = sum(part.value * part.weight for part in hits[mine].parts)
    assert hits[mine].score == pytest.approx(total)


async def test_what_leads_by_more_than_the_gate_stays_first(world):
    await save(world, QUERY)
    mine = await for_tasks(world, "carry out account tasks", "password")
    for _ in range(9):
        await outcome(world, mine, query=QUERY)
    hits, order = await found(world)
    assert set(order[:2]) >= {mine}
    margin = RankingWeights().reorder_margin
    relevance = {
        one: hit.score
        - sum(
            p.value * p.weight for p in hit.parts if p.name in ("learned", "outside_reorder_margin")
        )
        for one, hit in hits.items()
    }
    assert relevance[mine] == pytest.approx(max(relevance.values()) - margin)


@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELEVANCE])
@pytest.mark.parametrize("limit", [2, 3, 5])
async def test_a_pattern_whose_expression_matches_has_one_of_several_places(world, ranking, limit):
    for n in range(12):
        await save(world, f"{QUERY} {n}")
    mine = await for_tasks(world, "carry out account tasks", "password")
    await for_tasks(world, "carry out garden tasks", "garden")
    hits, order = await found(world, limit=limit, ranking=ranking)
    assert order[-1] == mine
    assert len(order) == limit
    scores = [hits[one].score for one in order]
    assert scores == sorted(scores, reverse=True)
    assert mine not in (await found(world, limit=1, ranking=ranking))[1]


async def test_a_filter_keeps_a_matching_pattern_out(world):
    await save(world, QUERY)
    mine = await for_tasks(world, "carry out account tasks", "password", language="go")
    python = PatternFilter(languages=("python",))
    _, order = await found(world, narrowed=python)
    assert mine not in order
    _, order = await found(world, narrowed=PatternFilter(languages=("go",)))
    assert order == [mine]
