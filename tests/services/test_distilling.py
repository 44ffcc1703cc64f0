from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lot_grpc.domain.distillation import DEFAULT_SIMILARITY
from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Action, PatternContent, PatternKind, PatternType
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.distillation import groups as groups_module
from lot_grpc.services.distillation.distiller import (
    DistillDefaults,
    Distilled,
    DistilledGroup,
    DistillRequest,
)
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.runtime import PatternLearning
from tests.services.invariants import check_invariants
from tests.services.steps.patterns import alike, distils
from tests.services.world import MINUTE, NS, World, draft, open_world, outcome, rows, save

USERS = ("alice", "bob", "carol", "dave")
ORDERS = ("list of all orders", "list of open orders", "list of late orders")


async def distil(world: World, **named: Any) -> Distilled:
    named.setdefault("similarity", 0.7)
    return await world.services.distillation.distiller.distil(NS, DistillRequest(**named))


async def edit(world: World, pattern_id: str, **changes: Any) -> None:
    content = replace(PatternContent("unused"), **changes)
    await world.services.patterns.patterns.update(
        NS, pattern_id, PatternEdit(content, frozenset(changes)), ""
    )


async def logins(world: World, users: tuple[str, ...] = USERS, **named: Any) -> list[str]:
    """One pattern a user, with the steps of a login."""
    ids = []
    for number, user in enumerate(users):
        steps = (
            Action("goto", {"url": f"https://shop.example.com/{number}"}),
            Action("type", {"user": user, "delay": 3.0}, "the name"),
            Action("click", {"selector": "#login"}),
        )
        task = f"Log in to the shop site as the user {user} and stay there"
        saved = await save(world, task, actions=steps, pattern_id=f"login-{user}", **named)
        ids.append(saved.pattern.pattern_id)
    return ids


async def snapshot(world: World) -> dict[str, Any]:
    return {record.id: record for record in await rows(world.store, PATTERNS)}


# --- groups -----------------------------------------------------------------------------------


async def test_like_patterns_get_one_that_says_what_is_constant_and_what_varies(world):
    ids = await logins(world)
    await save(world, "Export a quarterly sales report", pattern_id="else")
    distilled = await distil(world)
    (group,) = distilled.groups
    assert group.member_ids == ids
    content = group.pattern.content
    assert content.kind is PatternKind.DISTILLED
    assert content.task == "Log in to the shop site as the user {user} and stay there"
    assert content.actions == (
        Action("goto", {"url": "{url}"}),
        Action("type", {"user": "{user}", "delay": 3.0}, "the name"),
        Action("click", {"selector": "#login"}),
    )
    assert content.metadata["slots"]["user"] == list(USERS)
    assert content.metadata["member_count"] == 4
    assert "{user} was: alice; bob; carol; dave." in content.context
    assert content.source_pattern_ids == tuple(ids)
    assert content.confidence == 0.5
    assert group.pattern == await world.services.patterns.patterns.get(NS, group.pattern.pattern_id)
    assert (distilled.looked_at, distilled.created, distilled.extended) == (5, 1, 0)


@pytest.mark.parametrize(
    ("codes", "distilled"),
    [
        (["book('alice', 1)", "book('bob', 1)", "book('carol', 1)"], "book('{name}', 1)"),
        (["book('alice', 1)", "book('bob', 2)", "book('carol', 1)"], ""),
        (["book('alice', 1)", "", ""], ""),
        (["book_any()"] * 3, "book_any()"),
        (["", "", ""], ""),
    ],
)
async def test_code_has_the_slots_of_the_text_or_is_left_out(world, codes, distilled):
    for user, code in zip(USERS, codes, strict=False):
        task = f"Book the usual table for two as the user {user.title()} and stay there"
        await save(world, task, code=code.replace(user, user.title()), pattern_id=f"book-{user}")
    (group,) = (await distil(world)).groups
    assert group.pattern.content.task.endswith("as the user {name} and stay there")
    assert group.pattern.content.code == distilled


async def test_members_stay_as_they_are_but_for_their_mark(world):
    ids = await logins(world)
    before = await world.services.patterns.patterns.get_many(NS, tuple(ids))
    (group,) = (await distil(world)).groups
    after = await world.services.patterns.patterns.get_many(NS, tuple(ids))
    parent = group.pattern.pattern_id
    assert [p.content.parent_pattern_id for p in after] == [parent] * 4
    assert [p.etag for p in after] == [p.etag for p in before]
    assert [replace(p, content=replace(p.content, parent_pattern_id="")) for p in after] == before


async def test_nothing_is_grouped_across_kind_type_or_language(world):
    await logins(world, USERS[:2])
    await logins_of(world, "go", language="go")
    await logins_of(world, "fail", pattern_type=PatternType.FAILURE)
    await logins_of(world, "learned", kind=PatternKind.LEARNED)
    assert (await distil(world)).groups == []
    assert len((await distil(world, min_group_size=2)).groups) == 4


async def logins_of(world: World, name: str, **named: Any) -> None:
    for user in USERS[:2]:
        task = f"Log in to the shop site as the user {user} and stay there"
        await save(world, task, pattern_id=f"{name}-{user}", **named)


async def test_distilled_patterns_keep_type_and_language_and_are_not_distilled_again(world):
    await logins(world, language="go", pattern_type=PatternType.FAILURE)
    (group,) = (await distil(world)).groups
    content = group.pattern.content
    assert (content.language, content.pattern_type) == ("go", PatternType.FAILURE)
    for user in USERS:
        await save(world, f"{user} own", kind=PatternKind.DISTILLED, pattern_id=f"d-{user}")
    again = await distil(world, similarity=0.0)
    assert again.looked_at == 4


async def test_groups_that_are_alike_are_grouped_once_more(world):
    orders = "Log in to the shop site as {} and open the page of all orders there"
    refunds = "Log in to the new shop site as {} and then open the page of all refunds there"
    for user in USERS[:3]:
        await save(world, orders.format(user), pattern_id=f"orders-{user}")
        await save(world, refunds.format(user), pattern_id=f"refunds-{user}")
    levels = await distil(world, similarity=0.9)
    (top,) = levels.groups
    assert [len(below.member_ids) for below in top.groups] == [3, 3]
    assert sorted(top.member_ids) == sorted(below.pattern.pattern_id for below in top.groups)
    for below in top.groups:
        stored = await world.services.patterns.patterns.get(NS, below.pattern.pattern_id)
        assert stored.content.parent_pattern_id == top.pattern.pattern_id
        assert stored == below.pattern
    assert top.size == 6
    assert top.pattern.content.metadata["level"] == 2
    assert levels.created == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Enable the {} mode of the editor", "Disable the {} mode of the editor"),
        ("Add the user {} to the shop", "Remove the user {} from the shop"),
        ("Please mount the volume {} here", "Please unmount the volume {} here"),
        ("Run the job {} with retries", "Run the job {} without retries"),
        ("Turn on the light in {} now", "Turn off the light in {} now"),
    ],
)
@pytest.mark.parametrize("similarity", [0.0, 0.5, 0.8])
async def test_opposites_are_in_one_group_at_no_level(world, one, other, similarity):
    for user in USERS:
        await save(world, one.format(user), pattern_id=f"one-{user}")
        await save(world, other.format(user), pattern_id=f"other-{user}")
    for _ in range(2):
        groups = (await distil(world, similarity=similarity)).groups
        assert sorted(group.member_ids for group in groups) == [
            [f"{name}-{user}" for user in USERS] for name in ("one", "other")
        ]
    await save(world, one.format("erin"), pattern_id="one-erin")
    groups = (await distil(world, similarity=similarity)).groups
    assert sorted(len(group.member_ids) for group in groups) == [4, 5]


async def test_one_template_with_two_slots_is_one_group_whatever_the_level_of_its_parts(world):
    for n, (user, page) in enumerate(zip(USERS, ("orders", "refunds", "gifts"), strict=False)):
        task = f"Log in to the shop site as {user} and open the page of all {page} there"
        await save(world, task, pattern_id=f"p{n}")
    (group,) = (await distil(world, similarity=DEFAULT_SIMILARITY)).groups
    assert group.pattern.content.task == (
        "Log in to the shop site as {text} and open the page of all {text_2} there"
    )


async def test_the_least_size_of_a_group(world):
    await logins(world, USERS[:2])
    assert (await distil(world)).groups == []
    assert len((await distil(world, min_group_size=2)).groups) == 1
    with pytest.raises(RequestInvalidError, match="one pattern cannot be generalized"):
        await distil(world, min_group_size=1)


async def test_without_patterns_there_are_no_groups(world):
    assert (await distil(world)) == Distilled([], 0, 0, 0, 0)


async def test_a_filter_says_what_is_looked_at(world):
    await logins(world, USERS[:3], category="shop")
    await save(
        world, "Log in to the shop site as the user erin and stay there", pattern_id="login-erin"
    )
    (group,) = (await distil(world, narrowed=PatternFilter(categories=("shop",)))).groups
    assert group.member_ids == [f"login-{user}" for user in USERS[:3]]
    assert group.pattern.content.category == "shop"


async def test_superseded_patterns_are_left_out_unless_asked_for(world):
    await logins(world, USERS[:3])
    await save(world, "Something quite different", supersedes="login-alice")
    assert (await distil(world)).groups == []
    await save(world, "Something else again", supersedes="login-bob")
    asked = PatternFilter(superseded=True)
    (group,) = (await distil(world, narrowed=asked, min_group_size=2)).groups
    assert group.member_ids == ["login-alice", "login-bob"]


async def test_pinned_patterns_are_members_as_others_are(world):
    await logins(world, pinned=True)
    (group,) = (await distil(world)).groups
    assert not group.pattern.content.pinned


async def test_a_parent_that_a_caller_gave_is_the_callers(world):
    ids = await logins(world)
    await edit(world, ids[0], parent_pattern_id="mine")
    (group,) = (await distil(world)).groups
    assert group.member_ids == ids[1:]
    assert (
        await world.services.patterns.patterns.get(NS, ids[0])
    ).content.parent_pattern_id == "mine"


# --- counters ---------------------------------------------------------------------------------


async def test_a_group_begins_with_the_counts_of_its_members(world):
    await logins(world, USERS[:3])
    await outcome(world, "login-alice", "login-bob", duration=2.0)
    await outcome(world, "login-alice", outcome=Outcome.FAILURE)
    (group,) = (await distil(world)).groups
    told = group.pattern.outcomes
    assert (told.success_count, told.failure_count, told.usage_count) == (2, 1, 3)
    assert told.average_duration == 2.0
    assert told.success_rate == pytest.approx((0.7 * 2 + 1.0 * 1) / 3)
    assert group.pattern.content.confidence == pytest.approx(3 / 5)
    # From then on it has its own.
    await outcome(world, "login-carol")
    found = await world.services.patterns.patterns.get(NS, group.pattern.pattern_id)
    assert found.outcomes == told
    (after,) = await outcome(world, group.pattern.pattern_id)
    assert after.outcomes.usage_count == 4


async def test_rates_of_what_was_never_used_are_averaged(world):
    for number, user in enumerate(USERS[:3]):
        task = f"Log in to the shop site as the user {user} and stay there"
        await save(world, task, pattern_id=user, initial_success_rate=number / 2)
    (group,) = (await distil(world)).groups
    assert group.pattern.outcomes.success_rate == 0.5
    assert group.pattern.outcomes.usage_count == 0


# --- again ------------------------------------------------------------------------------------


async def test_a_dry_run_tells_the_same_and_stores_nothing(world):
    await logins(world)
    before = await snapshot(world)
    dry = await distil(world, dry_run=True)
    assert await snapshot(world) == before
    assert await distil(world) == dry


async def test_a_second_run_changes_nothing(world):
    await logins(world)
    for order in ORDERS:
        await save(world, f"Open the page with the {order} of the shop", pattern_id=order[:9])
    first = await distil(world, similarity=0.6)
    before = await snapshot(world)
    again = await distil(world, similarity=0.6)
    assert await snapshot(world) == before
    assert again == replace(first, created=0)
    assert first.created


async def test_a_new_pattern_extends_the_group_that_it_is_like(world):
    await logins(world)
    (first,) = (await distil(world)).groups
    await logins(world, ("erin",))
    run = await distil(world)
    (group,) = run.groups
    assert (run.created, run.extended) == (0, 1)
    assert group.pattern.pattern_id == first.pattern.pattern_id
    assert group.member_ids == [*first.member_ids, "login-erin"]
    assert group.pattern.content.metadata["slots"]["user"] == [*USERS, "erin"]
    assert group.pattern.content.source_pattern_ids == tuple(group.member_ids)
    assert group.pattern.etag != first.pattern.etag
    assert group.pattern.outcomes == first.pattern.outcomes
    erin = await world.services.patterns.patterns.get(NS, "login-erin")
    assert erin.content.parent_pattern_id == group.pattern.pattern_id


async def test_what_a_caller_edited_of_a_group_is_kept_when_it_gets_members(world):
    await logins(world)
    (first,) = (await distil(world)).groups
    head = first.pattern.pattern_id
    await edit(world, head, task="Log in", title="Logins")
    await logins(world, ("erin",))
    (group,) = (await distil(world)).groups
    assert (group.pattern.content.task, group.pattern.content.title) == ("Log in", "Logins")
    assert len(group.pattern.content.source_pattern_ids) == 5
    before = await snapshot(world)
    await distil(world)
    assert await snapshot(world) == before


async def test_a_group_that_was_deleted_is_made_again_of_what_is_left(world):
    ids = await logins(world)
    (first,) = (await distil(world)).groups
    await world.services.patterns.patterns.delete(NS, first.pattern.pattern_id, "")
    await world.services.patterns.patterns.delete(NS, ids[0], "")
    (group,) = (await distil(world)).groups
    assert group.member_ids == ids[1:]
    assert group.pattern.pattern_id != first.pattern.pattern_id


async def test_an_edit_at_the_same_time_is_not_lost(world):
    """A member's mark goes by its stats revision, so that an edit is tried again on top of it."""
    ids = await logins(world)
    update = world.store.update
    edited = False

    async def edited_in_between(collection: str, *given: Any, **named: Any) -> bool:
        nonlocal edited
        if "parent_pattern_id" in named.get("set", {}) and not edited:
            edited = True
            await edit(world, ids[0], title="meanwhile")
        return bool(await update(collection, *given, **named))

    world.store.update = edited_in_between
    (group,) = (await distil(world)).groups
    found = await world.services.patterns.patterns.get(NS, ids[0])
    assert found.content.title == "meanwhile"
    assert found.content.parent_pattern_id == group.pattern.pattern_id


async def test_two_processes_at_once_make_one_group(world):
    await logins(world)
    other = world.another_process()
    first, second = await asyncio.gather(distil(world), distil(other))
    assert [g.pattern.pattern_id for g in first.groups] == [
        g.pattern.pattern_id for g in second.groups
    ]
    assert await world.store.count(PATTERNS, NS) == 5


async def test_of_too_many_the_best_are_looked_at_and_the_others_counted(world, monkeypatch):
    monkeypatch.setattr(groups_module, "MOST_LOOKED_AT", 3)
    await logins(world)
    await outcome(world, "login-alice")
    run = await distil(world)
    assert run.left_out == 1
    assert run.groups[0].member_ids == ["login-alice", "login-carol", "login-dave"]


WORDS = st.sampled_from(
    ["log", "in", "shop", "site", "order", "report", "export", "alice", "bob", "7", "delete"]
)

TASKS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@given(
    st.lists(TASKS, max_size=14),
    st.lists(TASKS, max_size=5),
    st.sampled_from([0.5, 0.7, 0.85, 0.95]),
    st.integers(2, 4),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_distilling_twice_changes_nothing_the_second_time(tasks, more, similarity, least):
    world = await open_world()
    for number, task in enumerate(tasks):
        await save(world, task, pattern_id=f"p{number}")
    ask = {"similarity": similarity, "min_group_size": least}
    dry = await distil(world, dry_run=True, **ask)
    first = await distil(world, **ask)
    assert first == dry
    before = await snapshot(world)
    again = await distil(world, **ask)
    assert await snapshot(world) == before
    assert again == replace(first, created=0)
    for number, task in enumerate(more):
        await save(world, task, pattern_id=f"q{number}")
    dry = await distil(world, dry_run=True, **ask)
    grown = await distil(world, **ask)
    assert _without_revisions(grown) == _without_revisions(dry)
    before = await snapshot(world)
    again = await distil(world, **ask)
    assert await snapshot(world) == before
    assert again == replace(grown, created=0, extended=0)
    await check_invariants(world.store, NS)
    members = [m for group in grown.groups for m in _leaves(group)]
    assert len(members) == len(set(members)), "a pattern is in two groups"
    assert all(group.size >= least for group in grown.groups)


def _without_revisions(told: Distilled) -> Distilled:
    return replace(told, groups=[_group_without(group) for group in told.groups])


def _group_without(group: DistilledGroup) -> DistilledGroup:
    below = [_group_without(one) for one in group.groups]
    return replace(group, pattern=replace(group.pattern, revision=0), groups=below)


def _leaves(group: Any) -> list[str]:
    if not group.groups:
        return list(group.member_ids)
    return [leaf for below in group.groups for leaf in _leaves(below)]


# --- by itself --------------------------------------------------------------------------------


async def test_a_schedule_distils_each_namespace_once_in_its_time_whoever_comes_first():
    learning = PatternLearning(distill=DistillDefaults(0.7), interval=10 * MINUTE)
    world = await open_world(learning=learning)
    other = world.another_process()
    await logins(world)
    await world.services.patterns.writer.save("other", draft("other"))
    sweeps = [w.services.distillation.schedule.sweep for w in (world, other)]
    assert [await sweep() for sweep in sweeps] == ["other", NS]
    assert await world.store.count(PATTERNS, NS) == 5
    assert [await sweep() for sweep in sweeps] == ["", ""]
    world.clock.advance(10 * MINUTE)
    assert await sweeps[0]() == "other"


async def test_without_a_schedule_nothing_is_distilled_by_itself(world):
    await logins(world)
    assert await world.services.distillation.schedule.sweep() == ""
    assert await world.store.count(PATTERNS, NS) == 4


async def test_the_case_that_dies_at_each_write_has_two_levels(world):
    """So that the proof in ``test_faults`` covers them."""
    await alike(world, NS)
    (top,) = (await distils(world, NS)).groups
    assert [len(below.member_ids) for below in top.groups] == [4, 4]
