"""The contexts of ten tasks, word by word, and as the docs show three of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lot_grpc.domain.context.tokens import token_count
from tests.golden.contexts import TASKS, kept, texts, told
from tests.golden.team import open_team

DOCS = Path(__file__).parents[2] / "docs" / "context.md"


async def test_the_texts_are_those_that_are_kept():
    made = await texts()
    assert len(made) == 10
    for name, text in made.items():
        assert text == kept(name), f"see python -m tests.golden.contexts --update: {name}"


async def test_what_was_asked_before_changes_nothing():
    world = await open_team()
    first = [await told(world, name) for name in TASKS]
    again = [await told(world, name) for name in reversed(list(TASKS))]
    for one, other in zip(first, reversed(again), strict=True):
        assert one.prompt == other.prompt
        assert one.retrieval_id != other.retrieval_id
        assert one.retrieval_id not in one.prompt.text


async def test_a_text_has_the_ids_of_all_it_tells():
    world = await open_team()
    for name in TASKS:
        context = await told(world, name)
        ids = [hit.thing.pattern_id for hit in context.patterns.hits]
        ids += [hit.thing.episode_id for hit in context.episodes]
        ids += [hit.thing.memory_id for hit in context.memories]
        ids += [hit.error_solution.error_solution_id for hit in context.errors]
        ids += [one.key for one in context.preferences]
        ids += [one for warning in context.warnings for one in warning.episode_ids]
        if not context.prompt.truncated:
            for one in ids:
                assert f"`{one}`" in context.prompt.text
        assert context.prompt.tokens == token_count(context.prompt.text)


@pytest.mark.parametrize("name", ["login", "deploy-in-400-tokens", "missing-module"])
def test_the_docs_show_it(name):
    assert f"`````markdown\n{kept(name)}`````" in DOCS.read_text(encoding="utf-8")
