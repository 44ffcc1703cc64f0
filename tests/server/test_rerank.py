"""The cross-encoder on the wire: its part of a score, its notice, its error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.testing.hashing import OverlapReranker
from tests.server import service
from tests.server.service import Lot, serving
from tests.server.wire import failure

NEAR = ["log in to the web shop", "log in to the shop", "log in to a shop of books"]
QUERY = "log in to the shop of books"
INCOMPLETE = outcome_pb2.NOTICE_CODE_RERANK_INCOMPLETE


class Missing(OverlapReranker):
    """Its model is not there."""

    async def score(
        self, query: str, texts: Sequence[str], *, seconds: float
    ) -> list[float | None]:
        raise ModelUnavailableError("no such file", path="nowhere")


@pytest.fixture
def made_with() -> Callable[[], OverlapReranker]:
    return OverlapReranker


@pytest.fixture
async def shop(
    made_with: Callable[[], OverlapReranker], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Lot]:
    """The service with another reranker, and texts that are nearly the same."""
    monkeypatch.setattr(service, "OverlapReranker", made_with)
    async with serving() as lot:
        for number, text in enumerate(NEAR):
            await lot.patterns.SavePattern(pattern={"task": text}, pattern_id=f"p{number}")
            await lot.memories.CreateMemory(memory={"content": text}, memory_id=f"p{number}")
        yield lot


async def ask(lot: Lot, resource_kind: str, **fields: Any) -> Any:
    fields = {"query": QUERY, "explain": True, **fields}
    if resource_kind == "patterns":
        return await lot.patterns.RecallPatterns(**fields)
    return await lot.memories.SearchMemories(**fields)


def parts(hit: Any) -> set[str]:
    return {part.name for part in hit.score_parts}


RESOURCE_KINDS = pytest.mark.parametrize("resource_kind", ["patterns", "memories"])


def doubles(reranker: Callable[[], OverlapReranker]) -> Any:
    return pytest.mark.parametrize("made_with", [reranker])


@RESOURCE_KINDS
async def test_a_reranked_hit_says_so_and_its_parts_add_up(shop, resource_kind):
    answer = await ask(shop, resource_kind, rerank=True)
    assert len(answer.hits) == 3
    for hit in answer.hits:
        assert "rerank" in parts(hit)
        assert hit.score == pytest.approx(sum(p.value * p.weight for p in hit.score_parts))
    assert not answer.notices


@RESOURCE_KINDS
async def test_nothing_is_reranked_unless_it_is_asked_for(shop, resource_kind):
    answer = await ask(shop, resource_kind)
    assert len(answer.hits) == 3
    assert not any("rerank" in parts(hit) for hit in answer.hits)


@RESOURCE_KINDS
@doubles(lambda: OverlapReranker(reached=2))
async def test_candidates_that_were_not_reached_are_told(shop, resource_kind):
    answer = await ask(shop, resource_kind, rerank=True)
    assert [(notice.code, notice.field) for notice in answer.notices] == [(INCOMPLETE, "rerank")]
    assert "no time for 1 of the candidates" in answer.notices[0].message
    assert sum("rerank" in parts(hit) for hit in answer.hits) == 2
    assert not (await ask(shop, resource_kind)).notices


@RESOURCE_KINDS
@doubles(Missing)
async def test_a_server_without_the_model_refuses_to_rerank_and_nothing_else(shop, resource_kind):
    failed = await failure(ask(shop, resource_kind, rerank=True))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "RERANKER_UNAVAILABLE")
    assert "lot-grpc check" in failed.message
    assert "nowhere" not in failed.message  # a path is no business of a caller
    assert len((await ask(shop, resource_kind)).hits) == 3
