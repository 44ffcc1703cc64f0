from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EtagMismatchError,
    PatternNotFoundError,
    RequestInvalidError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import CodeKind, Pattern, PatternContent, PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.paging import Page, Position
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.pattern_stats import PatternStats
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import OUTCOMES, PATTERNS, REQUESTS, TOMBSTONES
from lot_grpc.services.records.patterns import claim_point
from tests.services.world import NS, World, outcome, payloads, recall, rows, save


async def edit(world: World, pattern_id: str, etag: str = "", **changes: Any) -> Pattern:
    content = replace(PatternContent("unused"), **changes)
    wanted = PatternEdit(content, frozenset(changes))
    return (await world.services.patterns.patterns.update(NS, pattern_id, wanted, etag)).pattern


async def page(world: World, size: int, after=None, asked: PatternFilter | None = None):
    return await world.services.patterns.patterns.list_page(
        NS, asked or PatternFilter(), size, after
    )


async def all_pages(world: World, size: int, asked: PatternFilter | None = None) -> list[str]:
    found: list[str] = []
    after = None
    while True:
        one: Page[Pattern, Position] = await page(world, size, after, asked)
        assert len(one.items) <= size
        found += [pattern.content.task for pattern in one.items]
        if one.next is None:
            return found
        after = one.next


# --- editing ----------------------------------------------------------------------------------


async def test_an_edit_changes_just_the_fields_it_names(world):
    first = (await save(world, title="old", tags=("a",))).pattern
    world.clock.advance(5)
    new = await edit(world, first.pattern_id, tags=("b",))
    assert new.content == replace(first.content, tags=("b",))
    assert await world.services.patterns.patterns.get(NS, first.pattern_id) == new
    assert new.etag != first.etag
    assert (new.create_time, new.update_time) == (first.create_time, world.clock.now())


async def test_an_edit_by_a_stale_etag_is_refused_and_changes_nothing(world):
    first = (await save(world)).pattern
    second = await edit(world, first.pattern_id, first.etag, title="one")
    with pytest.raises(EtagMismatchError, match="read it again and repeat the edit"):
        await edit(world, first.pattern_id, first.etag, title="two")
    assert (await world.services.patterns.patterns.get(NS, first.pattern_id)) == second
    assert (await edit(world, first.pattern_id, second.etag, title="two")).content.title == "two"


async def test_an_outcome_does_not_make_an_etag_stale_and_an_edit_keeps_the_counters(world):
    first = (await save(world)).pattern
    (counted,) = await outcome(world, first.pattern_id, outcome=Outcome.FAILURE)
    assert counted.etag == first.etag
    assert counted.update_time == first.update_time
    edited = await edit(world, first.pattern_id, first.etag, title="new")
    assert edited.outcomes == counted.outcomes
    (again,) = await outcome(world, first.pattern_id)
    assert again.outcomes.usage_count == 2
    assert again.content.title == "new"


async def test_an_edit_that_changes_nothing_keeps_the_etag(world):
    first = (await save(world, title="same")).pattern
    world.clock.advance(5)
    assert await edit(world, first.pattern_id, title="same") == first


async def test_an_edited_task_is_found_by_its_new_words(world):
    first = (await save(world, "log in to the site")).pattern
    await save(world, "water the plants")
    await edit(world, first.pattern_id, task="compile the kernel")
    hits = (await recall(world, "compile the kernel")).hits
    assert hits[0].thing.pattern_id == first.pattern_id
    assert hits[0].similarity == pytest.approx(1.0)
    assert (await recall(world, "log in to the site", min_similarity=0.9)).hits == []


async def test_an_edit_of_other_fields_keeps_what_it_is_found_by(world):
    first = (await save(world, "log in to the site")).pattern
    await edit(world, first.pattern_id, tags=("x",), code="y = 2")
    hits = (await recall(world, "log in to the site")).hits
    assert hits[0].similarity == pytest.approx(1.0)


async def test_an_edit_moves_the_claim_with_the_content(world):
    first = (await save(world, "one")).pattern
    await edit(world, first.pattern_id, task="two")
    await edit(world, first.pattern_id, task="three")
    (claim,) = await rows(world.store, REQUESTS)
    assert claim.payload["pattern_id"] == first.pattern_id
    assert claim.id == claim_point(NS, PatternContent("three"))


async def test_an_edit_must_leave_a_whole_pattern(world):
    first = (await save(world, kind=PatternKind.CODE, code_kind=CodeKind.CLASS)).pattern
    with pytest.raises(RequestInvalidError, match="task must not be blank"):
        await edit(world, first.pattern_id, task="")
    with pytest.raises(RequestInvalidError, match="only allowed for kind CODE"):
        await edit(world, first.pattern_id, kind=PatternKind.TASK)
    with pytest.raises(RequestInvalidError, match="in the future"):
        await edit(world, first.pattern_id, expire_time=1)
    assert await world.services.patterns.patterns.get(NS, first.pattern_id) == first


async def test_an_expiry_may_be_set_moved_and_removed(world):
    first = (await save(world)).pattern
    soon = world.clock.now() + 5_000_000
    await edit(world, first.pattern_id, expire_time=soon)
    await edit(world, first.pattern_id, expire_time=None)
    world.clock.advance(60)
    assert (
        await world.services.patterns.patterns.get(NS, first.pattern_id)
    ).content.expire_time is None
    await edit(world, first.pattern_id, expire_time=world.clock.now() + 1)
    world.clock.advance(1)
    with pytest.raises(PatternNotFoundError):
        await edit(world, first.pattern_id, title="too late")


async def test_what_is_not_there_cannot_be_edited(world):
    with pytest.raises(PatternNotFoundError, match="no pattern 'nope' in namespace 'team'"):
        await edit(world, "nope", title="x")


# --- deleting ---------------------------------------------------------------------------------


async def test_a_delete_takes_claim_and_outcomes_along_and_leaves_a_tombstone(world):
    first = (await save(world)).pattern
    kept = (await save(world, "another")).pattern
    await outcome(world, first.pattern_id, kept.pattern_id)
    await world.services.patterns.patterns.delete(NS, first.pattern_id, "")
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.get(NS, first.pattern_id)
    content_index = [row["pattern_id"] for row in await payloads(world, REQUESTS)]
    assert content_index == [kept.pattern_id]
    assert [row["resource_id"] for row in await payloads(world, OUTCOMES)] == [kept.pattern_id]
    (stone,) = await payloads(world, TOMBSTONES)
    assert (stone["resource_kind"], stone["id"], stone["done"]) == (
        "pattern",
        first.pattern_id,
        True,
    )


async def test_a_delete_by_a_stale_etag_is_refused(world):
    first = (await save(world)).pattern
    await edit(world, first.pattern_id, title="new")
    with pytest.raises(EtagMismatchError):
        await world.services.patterns.patterns.delete(NS, first.pattern_id, first.etag)
    assert (await world.services.patterns.patterns.get(NS, first.pattern_id)).content.title == "new"
    assert await payloads(world, TOMBSTONES) == []


async def test_what_is_not_there_cannot_be_deleted(world):
    first = (await save(world)).pattern
    await world.services.patterns.patterns.delete(NS, first.pattern_id, "")
    for pattern_id in (first.pattern_id, "nope"):
        with pytest.raises(PatternNotFoundError):
            await world.services.patterns.patterns.delete(NS, pattern_id, "")


# --- lists ------------------------------------------------------------------------------------


async def test_lists_are_newest_first_and_end(world):
    for n in range(7):
        await save(world, f"task {n}")
    expected = [f"task {n}" for n in reversed(range(7))]
    for size in (1, 2, 3, 7, 50):
        assert await all_pages(world, size) == expected


async def test_what_is_created_between_pages_moves_nothing(world):
    for n in range(5):
        await save(world, f"task {n}")
    first = await page(world, 2)
    await save(world, "newer")
    second = await page(world, 2, first.next)
    await save(world, "newest")
    third = await page(world, 2, second.next)
    seen = [p.content.task for one in (first, second, third) for p in one.items]
    assert seen == ["task 4", "task 3", "task 2", "task 1", "task 0"]
    assert third.next is None


async def test_what_is_deleted_between_pages_does_not_hide_others(world):
    made = [(await save(world, f"task {n}")).pattern for n in range(6)]
    first = await page(world, 2)
    for gone in (4, 2):
        await world.services.patterns.patterns.delete(NS, made[gone].pattern_id, "")
    rest = await page(world, 5, first.next)
    assert [p.content.task for p in rest.items] == ["task 3", "task 1", "task 0"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
async def test_processes_that_made_one_sort_key_hide_nothing(world, size):
    """The clock stands still and each process counts its own keys, so every key is there thrice."""
    processes = [world, world.another_process(), world.another_process()]
    for n in range(4):
        for number, process in enumerate(processes):
            await save(process, f"task {n} of {number}")
    keys = [row["sort_key"] for row in await payloads(world, PATTERNS)]
    assert len(set(keys)) == 4
    seen = await all_pages(world, size)
    assert len(seen) == len(set(seen)) == 12


async def test_a_list_is_filtered(world):
    await save(world, "one", language="python", tags=("a", "b"), labels={"team": "x.y"})
    await save(world, "two", language="go", tags=("a",))
    await save(world, "three", language="python", category="web")
    for asked, expected in [
        (PatternFilter(languages=("py",)), ["three", "one"]),
        (PatternFilter(languages=("py",), tags_any=("a", "z")), ["one"]),
        (PatternFilter(tags_all=("a", "b")), ["one"]),
        (PatternFilter(tags_any=("a",)), ["two", "one"]),
        (PatternFilter(labels={"team": "x.y"}), ["one"]),
        (PatternFilter(categories=("web", "x")), ["three"]),
        (PatternFilter(pinned=True), []),
        (PatternFilter(min_usage_count=1), []),
        (PatternFilter(min_success_rate=1.0), ["three", "two", "one"]),
    ]:
        assert await all_pages(world, 2, asked) == expected


# --- sums -------------------------------------------------------------------------------------


async def test_sums_over_nothing_say_nothing(world):
    assert await world.services.patterns.patterns.stats(NS, PatternFilter()) == PatternStats()


async def test_sums_are_those_of_the_patterns(world):
    one = (await save(world, "one", language="python", category="web")).pattern
    two = (await save(world, "two", language="python", initial_success_rate=0.5)).pattern
    await save(world, "three", kind=PatternKind.CODE, dedupe=Dedupe.NONE, initial_success_rate=0.2)
    await outcome(world, one.pattern_id, outcome=Outcome.FAILURE)
    for _ in range(3):
        await outcome(world, two.pattern_id)
    rates = [0.7, 1 - 0.5 * 0.7**3, 0.2]
    found = await world.services.patterns.patterns.stats(NS, PatternFilter())
    assert found.total == 3
    assert found.average_success_rate == pytest.approx(sum(rates) / 3, abs=0.001)
    assert found.max_success_rate == pytest.approx(max(rates), abs=0.001)
    assert found.total_usage == 4
    assert found.most_used_pattern_id == two.pattern_id
    assert found.by_language == {"python": 2}
    assert found.by_category == {"web": 1}
    assert found.by_kind == {"task": 2, "code": 1}


async def test_sums_may_be_narrowed(world):
    one = (await save(world, "one", language="python")).pattern
    two = (await save(world, "two", language="go")).pattern
    await outcome(world, one.pattern_id, two.pattern_id)
    await outcome(world, two.pattern_id)
    found = await world.services.patterns.patterns.stats(NS, PatternFilter(languages=("py",)))
    assert (found.total, found.total_usage) == (1, 1)
    assert found.most_used_pattern_id == one.pattern_id
    assert found.by_language == {"python": 1}


async def test_patterns_never_used_have_no_most_used(world):
    await save(world)
    assert (
        await world.services.patterns.patterns.stats(NS, PatternFilter())
    ).most_used_pattern_id == ""
