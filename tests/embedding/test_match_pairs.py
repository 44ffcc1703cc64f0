"""The probability of the same task over the pairs that took no part in the fit, with the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lot_grpc.domain.match_probability import WEIGHTS
from lot_grpc.domain.search_text import SearchText
from lot_grpc.embedding.fastembed import FastembedEmbedder
from lot_grpc.services.recall.matching import match_of
from tests.calibration.__main__ import pairs_table
from tests.calibration.pairs import HELD, UNSEEN, TaskPair
from tests.calibration.sets import judged_pairs
from tests.calibration.vectors import CachedVectors

DOCS = Path(__file__).parents[2] / "docs" / "retrieval.md"

pytestmark = pytest.mark.model


async def match(embedder: FastembedEmbedder, one: TaskPair) -> float:
    query = await embedder.embed_query(one.query)
    [stored] = await embedder.embed_documents([one.stored])
    similarity = float(np.dot(query.vector, stored.vector))
    found = match_of(embedder, one.query, SearchText(one.stored), similarity)
    assert found is not None
    return found


async def test_held_pairs_fall_on_their_side(fastembed_embedder):
    right: dict[str, list[bool]] = {}
    for one in HELD:
        likely = await match(fastembed_embedder, one) >= 0.5
        right.setdefault(one.kind, []).append(likely == one.same)
    shares = {kind: sum(found) / len(found) for kind, found in right.items()}
    assert len(HELD) > 60
    for kind in ("opposite", "negation", "direction", "unrelated", "repeat"):
        assert shares[kind] >= 0.75, shares
    for kind in ("instance", "detail", "paraphrase", "neighbour"):
        assert shares[kind] >= 0.5, shares


@pytest.mark.parametrize(("title", "pairs"), [("held-out", HELD), ("unseen", UNSEEN)])
async def test_the_docs_show_how_pairs_fall(fastembed_embedder, tmp_path, title, pairs):
    embedder = CachedVectors(fastembed_embedder, tmp_path / "vectors.npz")
    judged = await judged_pairs(title, pairs, embedder)
    shown = [columns(line) for line in DOCS.read_text(encoding="utf-8").splitlines()]
    for line in pairs_table(title, judged, np.array(WEIGHTS)):
        assert columns(line) in shown, line


def columns(line: str) -> list[str]:
    """Without the mean, whose last digit another processor may round otherwise."""
    found = line.split(" | ")
    return [*found[:2], *found[3:]]


async def test_opposites_that_a_vector_hardly_tells_apart(fastembed_embedder):
    stored = "Disable two-factor authentication for all users"
    for query, low, high in (
        ("Enable two-factor authentication for all users", 0.0, 0.2),
        ("Turn off two-factor authentication for everybody", 0.6, 1.0),
        (stored, 0.85, 1.0),
    ):
        found = await match(fastembed_embedder, TaskPair("", query, stored, same=True))
        assert low <= found <= high, (query, found)
