from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.errors import EtagMismatchError
from lot_grpc.domain.policy import DEFAULT, NamespacePolicy, PolicyEdit, PolicyPreset
from lot_grpc.services.records.collections import POLICIES
from lot_grpc.services.retention.policies import Policies
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, Interleaving, open_world, payloads

PRESETS = {
    PolicyPreset.UNLIMITED: DEFAULT,
    PolicyPreset.BOUNDED: NamespacePolicy(max_episodes=1000, max_error_solutions=500),
}


def edit(preset: PolicyPreset | None = None, **changes: Any) -> PolicyEdit:
    return PolicyEdit(NamespacePolicy(**changes), frozenset(changes), preset)


async def test_without_a_policy_everything_is_kept_and_nothing_is_stored(world):
    stored = await world.services.retention.policies.get(NS)
    assert (stored.namespace, stored.policy, stored.etag, stored.update_time) == (
        NS, DEFAULT, "", 0,
    )  # fmt: skip
    assert await world.services.retention.policies.thresholds(NS) == (0.3, 1.0)
    assert await payloads(world, POLICIES) == []


async def test_an_edit_sets_what_it_names_in_its_namespace(world):
    policies: Policies = world.services.retention.policies
    first = await policies.update(NS, edit(max_patterns=7, similarity_threshold=0.5), "")
    assert first.update_time == world.clock.now()
    world.clock.advance(3)
    second = await policies.update(NS, edit(max_pattern_age=9, confidence_boost=2.0), first.etag)
    assert second.policy == NamespacePolicy(
        max_patterns=7, max_pattern_age=9, similarity_threshold=0.5, confidence_boost=2.0
    )
    assert second == await policies.get(NS)
    assert second.etag not in ("", first.etag)
    assert second.update_time == world.clock.now()
    assert await policies.thresholds(NS) == (0.5, 2.0)
    cleared = await policies.update(NS, edit(max_pattern_age=None), "")
    assert cleared.policy.max_pattern_age is None
    assert (await policies.get("elsewhere")).policy == DEFAULT


@pytest.mark.parametrize("preset", PolicyPreset)
async def test_a_preset_sets_all_bounds_first_and_leaves_the_thresholds(world, preset):
    policies = world.services.retention.policies
    await policies.update(NS, edit(max_patterns=7, max_memory_age=5, confidence_boost=2.0), "")
    stored = await policies.update(NS, edit(preset, max_memories=3), "")
    bounds = PRESETS[preset]
    assert stored.policy == NamespacePolicy(
        max_episodes=bounds.max_episodes,
        max_error_solutions=bounds.max_error_solutions,
        max_memories=3,
        confidence_boost=2.0,
    )


async def test_a_stale_etag_is_refused_and_says_the_present_one(world):
    policies = world.services.retention.policies
    with pytest.raises(EtagMismatchError):
        await policies.update(NS, edit(max_patterns=7), "1")
    first = await policies.update(NS, edit(max_patterns=7), "")
    await policies.update(NS, edit(max_patterns=8), first.etag)
    with pytest.raises(EtagMismatchError):
        await policies.update(NS, edit(max_patterns=9), first.etag)
    assert (await policies.get(NS)).policy.max_patterns == 8


async def test_an_edit_that_changes_nothing_leaves_the_etag(world):
    policies = world.services.retention.policies
    first = await policies.update(NS, edit(max_patterns=7), "")
    assert await policies.update(NS, edit(max_patterns=7), "") == first


async def test_a_dry_run_sets_nothing(world):
    policies = world.services.retention.policies
    dry = await policies.update(NS, edit(max_patterns=7), "", dry_run=True)
    assert (dry.policy.max_patterns, dry.etag) == (7, "")
    assert await payloads(world, POLICIES) == []


async def test_edits_at_once_are_all_kept():
    clock = FixedClock()
    world = await open_world(Interleaving(InMemoryStore(clock)), clock)
    names = ("max_episodes", "max_error_solutions", "max_patterns", "max_memories")
    edits = [edit(None, **{name: 5}) for name in names]
    await asyncio.gather(*(world.services.retention.policies.update(NS, one, "") for one in edits))
    stored = await world.services.retention.policies.get(NS)
    assert [getattr(stored.policy, name) for name in names] == [5, 5, 5, 5]
    assert stored.revision == 4
