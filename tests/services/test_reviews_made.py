"""Reviews of what the server makes or brings: extraction, distillation, seeds, imports."""

from __future__ import annotations

from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import ErrorSolutionFilter
from lot_grpc.domain.origin import BY_SERVER, Editor, Origin, OriginKind, Review, ReviewState
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit, PolicyPreset
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.distillation.distiller import Distilled, DistillRequest
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.reviews import ReviewDraft, Reviewed, ReviewItem
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.steps.episodes import extracts, login, records_mending, two_logins
from tests.services.steps.patterns import NEAR, extracts_code
from tests.services.steps.reviews import IDS, MODEL, held_back, reviews_models
from tests.services.world import NS, World, open_world, save

PENDING = Review(ReviewState.PENDING)
WORDS = ("now", "today", "again", "soon")


async def review(
    world: World, kind: ResourceKind, id: str, state: ReviewState = ReviewState.APPROVED
) -> Reviewed:
    given = ReviewDraft(kind, (ReviewItem(id),), state)
    [result] = await world.services.reviewer.review(NS, given)
    return result


async def distil(world: World, **named: object) -> Distilled:
    request = replace(DistillRequest(similarity=0.92), **named)  # type: ignore[arg-type]
    return await world.services.distillation.distiller.distil(NS, request)


async def four_alike(world: World, **named: object) -> None:
    for number, word in enumerate(WORDS):
        await save(world, NEAR.format(word), pattern_id=f"a{number}", **named)


async def head(world: World) -> str:
    [group] = (await distil(world)).groups
    return group.pattern.pattern_id


# --- distillation -----------------------------------------------------------------------------


async def test_what_is_distilled_is_made_by_the_server(world):
    await four_alike(world, origin=Origin(OriginKind.PERSON))
    [group] = (await distil(world)).groups
    assert (group.pattern.content.origin, group.pattern.review) == (BY_SERVER, None)


async def test_what_is_held_back_is_not_distilled_even_if_the_filter_names_it(world):
    await reviews_models(world, NS)
    await four_alike(world, origin=MODEL)
    named = PatternFilter(reviews=(ReviewState.PENDING,))
    for narrowed in (PatternFilter(), named):
        distilled = await distil(world, narrowed=narrowed)
        assert (distilled.groups, distilled.looked_at) == ([], 0)


async def test_a_group_is_made_of_its_members_that_are_not_held_back(world):
    await four_alike(world)
    await review(world, ResourceKind.PATTERN, "a3", ReviewState.REJECTED)
    [group] = (await distil(world)).groups
    assert group.member_ids == ["a0", "a1", "a2"]
    await save(world, NEAR.format("then"), pattern_id="a9")
    await review(world, ResourceKind.PATTERN, "a0", ReviewState.REJECTED)
    [group] = (await distil(world)).groups
    assert group.member_ids == ["a1", "a2", "a9"]
    assert group.pattern.content.source_pattern_ids == ("a1", "a2", "a9")
    await review(world, ResourceKind.PATTERN, "a0")
    [group] = (await distil(world)).groups
    assert group.member_ids == ["a0", "a1", "a2", "a9"]
    await check_invariants(world.store, NS)


async def test_what_is_distilled_is_held_back_by_the_policy_each_time_it_is_rewritten(world):
    await reviews_models(world, NS)
    await four_alike(world)
    pattern_id = await head(world)
    patterns = world.services.patterns.patterns
    assert (await patterns.get(NS, pattern_id)).review == PENDING
    await review(world, ResourceKind.PATTERN, pattern_id)
    await distil(world)
    assert (await patterns.get(NS, pattern_id)).review != PENDING
    await save(world, NEAR.format("then"), pattern_id="a9")
    await distil(world)
    assert (await patterns.get(NS, pattern_id)).review == PENDING
    await check_invariants(world.store, NS)


async def test_a_group_above_is_made_only_of_heads_that_are_not_held_back(world):
    await reviews_models(world, NS)
    orders = "Log in to the shop site as {} and open the page of all orders there"
    refunds = "Log in to the new shop site as {} and then open the page of all refunds there"
    for user in ("alice", "bob", "carol"):
        await save(world, orders.format(user), pattern_id=f"orders-{user}")
        await save(world, refunds.format(user), pattern_id=f"refunds-{user}")
    heads = (await distil(world, similarity=0.9)).groups
    assert [(len(one.member_ids), one.pattern.review) for one in heads] == [(3, PENDING)] * 2
    await review(world, ResourceKind.PATTERN, heads[0].pattern.pattern_id)
    assert len((await distil(world, similarity=0.9)).groups) == 2
    await review(world, ResourceKind.PATTERN, heads[1].pattern.pattern_id)
    [top] = (await distil(world, similarity=0.9)).groups
    assert (len(top.groups), top.pattern.review) == (2, PENDING)
    await check_invariants(world.store, NS)


# --- extraction -------------------------------------------------------------------------------


async def test_what_is_extracted_is_made_by_the_server_and_held_back_by_the_policy(world):
    await reviews_models(world, NS)
    await two_logins(world, NS)
    await login(world, NS, "third", extract=True)
    await records_mending(world, NS)
    await extracts_code(world, NS)
    patterns = await world.services.patterns.patterns.list_page(NS, PatternFilter(), 100, None)
    solutions = await world.services.errors.solutions.list_page(NS, ErrorSolutionFilter(), 9, None)
    made = [*patterns.items, *solutions.items]
    assert len(patterns.items) > 3
    assert solutions.items
    assert {(one.content.origin, one.review) for one in made} == {(BY_SERVER, PENDING)}


async def test_a_learned_pattern_is_held_back_again_once_it_is_rewritten(world):
    await reviews_models(world, NS)
    await two_logins(world, NS)
    await extracts(world, NS)
    patterns = world.services.patterns.patterns
    [learned] = (await patterns.list_page(NS, PatternFilter(), 9, None)).items
    await save(world, "how it was", pattern_id="old")
    edit = PatternEdit(PatternContent("", supersedes="old"), frozenset({"supersedes"}))
    await patterns.update(NS, learned.pattern_id, edit, "")
    await review(world, ResourceKind.PATTERN, learned.pattern_id)
    assert (await patterns.get(NS, "old")).superseded_by == learned.pattern_id
    await login(world, NS, "later")
    await extracts(world, NS)
    after = await patterns.get(NS, learned.pattern_id)
    assert (after.review, after.content.origin) == (PENDING, BY_SERVER)
    assert (await patterns.get(NS, "old")).superseded_by == ""
    await check_invariants(world.store, NS)


async def test_an_extraction_of_what_a_model_wrote_before_raises_nothing(world):
    await two_logins(world, NS)
    await extracts(world, NS)
    patterns = world.services.patterns.patterns
    [learned] = (await patterns.list_page(NS, PatternFilter(), 9, None)).items
    lowers = PatternEdit(PatternContent(""), frozenset(), editor=Editor(MODEL, alone=True))
    await patterns.update(NS, learned.pattern_id, lowers, "")
    await login(world, NS, "later")
    await extracts(world, NS)
    assert (await patterns.get(NS, learned.pattern_id)).content.origin == MODEL


# --- seeds, imports, presets ------------------------------------------------------------------


async def test_seeds_are_imported_and_held_back_if_the_policy_says_so(world):
    await world.services.seeder.seed(NS, Seeds(("common_errors",)))
    page = await world.services.errors.solutions.list_page(NS, ErrorSolutionFilter(), 3, None)
    assert {one.content.origin for one in page.items} == {
        Origin(OriginKind.IMPORT, "common_errors")
    }
    assert {one.review for one in page.items} == {None}
    edit = PolicyEdit(
        NamespacePolicy(review_origins=(OriginKind.IMPORT,)), frozenset({"review_origins"})
    )
    await world.services.retention.policies.update("other", edit, "")
    await world.services.seeder.seed("other", Seeds(("common_errors",)))
    page = await world.services.errors.solutions.list_page("other", ErrorSolutionFilter(), 3, None)
    assert {one.review for one in page.items} == {Review(ReviewState.PENDING)}


async def test_an_import_brings_origin_and_review_as_they_were_exported(world):
    await held_back(world, NS)
    await review(world, ResourceKind.MEMORY, "m", ReviewState.REJECTED)
    expected = [await world.services.resources.of(kind).get(NS, name) for kind, name in IDS.items()]
    exporter = world.services.transfer.exporter
    rows = [row async for row, _ in exporter.rows(ExportSpec(NS))]
    clock = FixedClock()
    other = await open_world(InMemoryStore(clock), clock)
    await other.services.transfer.importer.take(ImportRun(ImportTerms()), rows)
    came = [await other.services.resources.of(kind).get(NS, name) for kind, name in IDS.items()]
    assert [(one.content.origin, one.review, one.etag) for one in came] == [
        (one.content.origin, one.review, one.etag) for one in expected
    ]
    assert not (await other.services.patterns.patterns.get(NS, "old")).superseded_by
    await check_invariants(other.store, NS)


async def test_a_preset_leaves_the_origins_to_review(world):
    await reviews_models(world, NS)
    policies = world.services.retention.policies
    for preset in PolicyPreset:
        after = await policies.update(NS, PolicyEdit(preset=preset), "")
        assert after.policy.review_origins == (OriginKind.MODEL, BY_SERVER.kind)


async def test_a_policy_counts_from_its_first_write_on_in_any_process(world):
    other = world.another_process()
    await reviews_models(other, NS)
    assert (await save(world, "one", origin=MODEL)).pattern.review is not None
