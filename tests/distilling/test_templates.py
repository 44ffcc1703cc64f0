"""Templates of tasks are found by default, and what is no template is not merged."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from tests.distilling.families import DIFFERENT, FAMILIES
from tests.distilling.running import distilled, tasks_of


@pytest.fixture
async def model() -> AsyncIterator[FastembedEmbedder]:
    embedder = await open_fastembed()
    yield embedder
    await embedder.close()


def test_there_are_thirty_of_each_and_half_of_them_are_held_out():
    for sets in (FAMILIES, DIFFERENT):
        assert {half: len(found) for half, found in sets.items()} == {"dev": 15, "held": 15}
    assert all(len(tasks) >= 3 for half in FAMILIES.values() for tasks in half)


@pytest.mark.model
@pytest.mark.parametrize(("half", "found"), [("dev", 14), ("held", 12)])
@pytest.mark.parametrize("least", [2, 3])
async def test_templates_are_found_and_opposites_and_other_actions_kept_apart(
    model, half, found, least
):
    one = await distilled(model, tasks_of(half), least)
    assert one.pure == 1.0
    assert one.merged() == []
    assert round(one.found * 15) >= found


@pytest.mark.model
async def test_templates_tell_what_is_done(model):
    tasks = [
        f"{act} the nightly backup of {name}"
        for act in ("Lock", "Unlock", "Check", "Verify")
        for name in ("orders", "users", "billing")
    ]
    one = await distilled(model, [(task, "") for task in tasks])
    assert sorted(one.texts) == [
        "Check or verify the nightly backup of {text}",
        "Check the nightly backup of {text}",
        "Lock the nightly backup of {text}",
        "Unlock the nightly backup of {text}",
        "Verify the nightly backup of {text}",
    ]
