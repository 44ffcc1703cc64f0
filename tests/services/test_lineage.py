"""What supersedes what, and where a pattern comes from."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.errors import PatternNotFoundError, RequestInvalidError
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.lineage.lineage import Relation
from lot_grpc.services.patterns.drafts import Saved
from lot_grpc.services.patterns.lineage import PatternLineage
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.patterns.pruner import PruneDraft
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.transfer.importer import ImportRun
from tests.services.circles import check_closing_a_circle_at_once
from tests.services.invariants import check_invariants
from tests.services.steps.patterns import alike, distils
from tests.services.world import (
    MINUTE,
    NS,
    World,
    draft,
    outcome,
    recall,
    save,
)


async def supersede(world: World, pattern_id: str, superseded: str) -> None:
    wanted = PatternEdit(PatternContent("", supersedes=superseded), frozenset({"supersedes"}))
    await world.services.patterns.patterns.update(NS, pattern_id, wanted, "")


async def marks(world: World) -> dict[str, str]:
    found = (await world.services.patterns.patterns.list_page(NS, PatternFilter(), 100, None)).items
    return {p.pattern_id: p.superseded_by for p in found if p.superseded_by}


async def ids(world: World, **named: Any) -> set[str]:
    found = await recall(world, "task", limit=20, narrowed=PatternFilter(**named))
    return {hit.thing.pattern_id for hit in found.hits}


async def three(world: World) -> None:
    """``a``, which ``b`` supersedes, which ``c`` supersedes."""
    await save(world, "task a", pattern_id="a")
    await save(world, "task b", pattern_id="b", supersedes="a")
    await save(world, "task c", pattern_id="c", supersedes="b")


# --- marks ------------------------------------------------------------------------------------


async def test_recall_leaves_superseded_patterns_out_unless_asked(world):
    await three(world)
    assert await marks(world) == {"a": "b", "b": "c"}
    assert await ids(world) == {"c"}
    assert await ids(world, superseded=False) == {"c"}
    assert await ids(world, superseded=True) == {"a", "b"}
    listed = world.services.patterns.patterns.list_page
    assert len((await listed(NS, PatternFilter(), 9, None)).items) == 3
    (only,) = (await listed(NS, PatternFilter(superseded=False), 9, None)).items
    assert only.pattern_id == "c"


async def test_the_mark_moves_no_etag_and_no_time(world):
    before = (await save(world, "task a", pattern_id="a")).pattern
    world.clock.advance(MINUTE)
    await save(world, "task b", supersedes="a")
    after = await world.services.patterns.patterns.get(NS, "a")
    assert (after.etag, after.update_time) == (before.etag, before.update_time)
    assert after.content == before.content


async def test_the_mark_outlives_an_edit_and_an_outcome_of_the_old_one(world):
    await three(world)
    edit = PatternEdit(PatternContent("other words"), frozenset({"task"}))
    await world.services.patterns.patterns.update(NS, "a", edit, "")
    (used,) = await outcome(world, "a")
    assert used.superseded_by == "b"
    assert await ids(world) == {"c"}


async def test_another_name_unmarks_the_one_before(world):
    await three(world)
    await save(world, "task d", pattern_id="d")
    await supersede(world, "c", "d")
    assert await marks(world) == {"a": "b", "d": "c"}
    await supersede(world, "c", "")
    assert await marks(world) == {"a": "b"}


async def test_a_deleted_successor_unmarks(world):
    await three(world)
    await world.services.patterns.patterns.delete(NS, "b", "")
    assert await marks(world) == {}
    assert await ids(world) == {"a", "c"}


async def test_an_expired_successor_unmarks_with_the_next_sweep(world):
    await save(world, "task a", pattern_id="a")
    await save(world, "task b", pattern_id="b", supersedes="a", ttl=MINUTE * 1_000_000)
    world.clock.advance(MINUTE)
    await world.services.housekeeping.drop_expired()
    assert await marks(world) == {}


async def test_of_two_successors_the_newest_counts_and_then_the_other(world):
    await save(world, "task a", pattern_id="a")
    await save(world, "task b", pattern_id="b", supersedes="a")
    await save(world, "task c", pattern_id="c", supersedes="a")
    assert await marks(world) == {"a": "c"}
    await world.services.patterns.patterns.delete(NS, "c", "")
    assert await marks(world) == {"a": "b"}


# --- ids that are used again -----------------------------------------------------------------


async def _as_saved(world: World) -> None:
    await save(world, "task a", pattern_id="a")


async def _in_a_batch(world: World) -> None:
    drafts = [draft("new"), draft("task a", pattern_id="a"), draft("task d", pattern_id="d")]
    await world.services.patterns.writer.save_many(NS, drafts)


async def _superseding(world: World) -> None:
    await save(world, "task d", pattern_id="d")
    await save(world, "task a", pattern_id="a", supersedes="d")


@pytest.mark.parametrize("again", [_as_saved, _in_a_batch, _superseding])
@pytest.mark.parametrize("expired", [False, True])
async def test_one_that_takes_the_id_of_a_deleted_one_is_marked_again(world, again, expired):
    await save(world, "task a", pattern_id="a", ttl=MINUTE * 1_000_000)
    await save(world, "task b", pattern_id="b", supersedes="a")
    await save(world, "task c", pattern_id="c", supersedes="a")
    if expired:
        world.clock.advance(MINUTE)
        await world.services.housekeeping.drop_expired()
    else:
        await world.services.patterns.patterns.delete(NS, "a", "")
    await again(world)
    assert (await marks(world))["a"] == "c"
    await check_invariants(world.store, NS)
    await world.services.patterns.patterns.delete(NS, "c", "")
    assert (await marks(world))["a"] == "b"


async def test_a_seeded_one_that_takes_the_id_again_is_marked_again(world):
    await world.services.seeder.seed(NS, Seeds())
    seeded = (await world.services.patterns.patterns.list_page(NS, PatternFilter(), 1, None)).items[
        0
    ]
    await save(world, "task b", pattern_id="b", supersedes=seeded.pattern_id)
    await world.services.patterns.patterns.delete(NS, seeded.pattern_id, "")
    await world.services.seeder.seed(NS, Seeds(restore_deleted=True))
    assert await marks(world) == {seeded.pattern_id: "b"}


async def test_an_imported_one_that_takes_the_id_again_is_marked_again(world):
    await save(world, "task a", pattern_id="a")
    rows = [row async for row, _ in world.services.transfer.exporter.rows(ExportSpec(NS))]
    await save(world, "task b", pattern_id="b", supersedes="a")
    await world.services.patterns.patterns.delete(NS, "a", "")
    await world.services.transfer.importer.take(ImportRun(ImportTerms()), rows)
    assert await marks(world) == {"a": "b"}


async def test_a_pruned_successor_unmarks(world):
    await save(world, "task a", pattern_id="a", initial_success_rate=1.0)
    await save(world, "task b", pattern_id="b", supersedes="a", initial_success_rate=0.1)
    await world.services.patterns.pruner.prune(
        NS, PruneDraft(PatternFilter(), max_success_rate=0.5)
    )
    assert await marks(world) == {}
    await check_invariants(world.store, NS)


# --- what is refused --------------------------------------------------------------------------


async def test_what_is_not_there_cannot_be_superseded(world):
    await world.services.patterns.writer.save("other", draft("x", pattern_id="elsewhere"))
    await save(world, "task a", pattern_id="a")
    for missing in ("none", "elsewhere"):
        with pytest.raises(PatternNotFoundError, match="must name an existing pattern"):
            await save(world, "new", supersedes=missing)
        with pytest.raises(PatternNotFoundError):
            await supersede(world, "a", missing)
    assert await world.store.count(PATTERNS, NS) == 1
    await check_invariants(world.store, NS)


async def test_nothing_supersedes_itself_or_in_a_circle(world):
    await three(world)
    for pattern_id, superseded in (("a", "a"), ("a", "b"), ("a", "c"), ("b", "c")):
        with pytest.raises(RequestInvalidError, match="supersede"):
            await supersede(world, pattern_id, superseded)
    with pytest.raises(RequestInvalidError, match="itself"):
        await save(world, "new", pattern_id="new", supersedes="new")
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


@pytest.mark.parametrize("seed", range(12))
async def test_of_several_that_close_a_circle_at_once_one_fails_at_least(seed):
    async def create(world: World, name: str) -> None:
        await save(world, f"task {name}", pattern_id=name)

    async def supersedes(world: World, name: str) -> str:
        return (await world.services.patterns.patterns.get(NS, name)).content.supersedes

    await check_closing_a_circle_at_once(seed, create, supersede, supersedes)


async def test_an_item_of_a_batch_may_supersede_one_before_it(world):
    results = await world.services.patterns.writer.save_many(
        NS,
        [draft("one", pattern_id="one"), draft("two", pattern_id="two", supersedes="one")],
    )
    assert all(isinstance(one, Saved) and one.created for one in results)
    assert await marks(world) == {"one": "two"}


async def test_a_repeat_of_a_content_supersedes_nothing(world):
    await save(world, "task a", pattern_id="a")
    first = await save(world, "task b")
    again = await save(world, "task b", supersedes="a")
    assert (again.created, again.unchanged_fields) == (False, ("supersedes",))
    assert first.pattern.content.supersedes == ""
    assert await marks(world) == {}


async def test_a_note_that_was_left_is_followed_and_dropped(world):
    await three(world)
    lineage = PatternLineage(world.store, TimeSource(world.clock))
    await lineage.begin(NS, "c", "", "b")
    assert await lineage.roll_forward(world.clock.now() - 1) == 0
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


async def test_a_circle_that_a_death_left_is_broken(world):
    """Its writer died before it looked whether another had closed the circle."""
    await three(world)
    lineage = PatternLineage(world.store, TimeSource(world.clock))
    await lineage.begin(NS, "a", "", "c")
    point = pattern_point(NS, "a")
    await world.store.update(PATTERNS, NS, point, set={"supersedes": "c"})
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert (await world.services.patterns.patterns.get(NS, "a")).content.supersedes == ""
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


# --- reading ----------------------------------------------------------------------------------


async def relatives(world: World, pattern_id: str) -> list[tuple[Relation, str, int]]:
    pattern = await world.services.patterns.patterns.get(NS, pattern_id)
    found = await world.services.patterns.lineage.read(NS, pattern.pattern_id)
    return [(one.relation, one.thing.pattern_id, one.distance) for one in found]


async def test_lineage_tells_predecessors_and_successors_with_their_rates(world):
    await three(world)
    await outcome(world, "c")
    assert await relatives(world, "b") == [
        (Relation.SUPERSEDED, "a", 1),
        (Relation.SUCCESSOR, "c", 1),
    ]
    assert await relatives(world, "c") == [
        (Relation.SUPERSEDED, "b", 1),
        (Relation.SUPERSEDED, "a", 2),
    ]
    pattern = await world.services.patterns.patterns.get(NS, "a")
    successors = await world.services.patterns.lineage.read(NS, pattern.pattern_id)
    assert [one.thing.outcomes.usage_count for one in successors] == [0, 1]


async def test_lineage_tells_groups_and_members(world):
    await alike(world, NS)
    (top,) = (await distils(world, NS)).groups
    one, other = (below.pattern.pattern_id for below in top.groups)
    outer = top.pattern.pattern_id
    inner = (await world.services.patterns.patterns.get(NS, "a0")).content.parent_pattern_id
    assert await relatives(world, "a0") == [(Relation.GROUP, inner, 1), (Relation.GROUP, outer, 2)]
    members = await relatives(world, inner)
    assert members[0] == (Relation.GROUP, outer, 1)
    assert {name for relation, name, _ in members[1:]} == {f"a{n}" for n in range(4)}
    assert {(r, name) for r, name, _ in await relatives(world, outer)} == {
        (Relation.MEMBER, one),
        (Relation.MEMBER, other),
    }


async def test_a_pattern_alone_has_no_lineage(world):
    await save(world, "task a", pattern_id="a")
    await save(world, "task b", pattern_id="b", parent_pattern_id="b", source_pattern_ids=("b",))
    assert await relatives(world, "a") == await relatives(world, "b") == []
