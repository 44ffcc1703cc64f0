"""Terms of other rules: ``check`` reports them, ``serve`` rebuilds them first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc

from lot_grpc.clock import SystemClock
from lot_grpc.pb.lot.v1 import pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from lot_grpc.ports import Record, SparseVector
from lot_grpc.services.records.collections import PATTERNS, SPARSE_VECTOR
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import DERIVATION, DERIVATION_VERSION, read_metadata
from lot_grpc.storage.edge import EdgeStore
from tests.e2e.process import PATIENCE, Served, run
from tests.services.derived.old_stores import EARLIER, make_old

DIMENSIONS = 384
"""Of the model that is used unless another is configured."""

CODE = "def close_cookie_banner(page):\n    page.click('#accept')"


def save(server: Served) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        for pattern in (Pattern(task="Get rid of the notice", code=CODE), Pattern(task="Log in")):
            stub.SavePattern(
                pattern_service_pb2.SavePatternRequest(pattern=pattern), timeout=PATIENCE
            )


async def opened(folder: Path, *, old: bool) -> tuple[str, list[Record]]:
    """The derivation that the store's metadata names, and its patterns; first made old, or not."""
    store = EdgeStore(folder, SystemClock(), min_free_bytes=0)
    try:
        await store.ensure_collections(REGISTRY.collection_specs(DIMENSIONS))
        if old:
            await make_old(store)
        patterns = await store.scroll(PATTERNS, None, (), limit=9, vectors=True)
        return (await read_metadata(store))[DERIVATION], patterns
    finally:
        await store.close()


def terms_of(patterns: list[Record]) -> list[list[int]]:
    terms = [one.vectors[SPARSE_VECTOR] for one in patterns]
    return [list(one.indices) for one in terms if isinstance(one, SparseVector)]


def test_what_other_rules_derived_is_derived_anew_before_it_serves(serve, data):
    first = serve(data)
    save(first)
    assert first.stop() == 0
    derivation, patterns = asyncio.run(opened(data, old=False))
    assert derivation == DERIVATION_VERSION
    terms = terms_of(patterns)
    assert [1] not in terms
    asyncio.run(opened(data, old=True))

    told = run(data, "check")
    assert told.code == 0, told
    assert "the next start rebuilds them" in told.stdout
    derivation, patterns = asyncio.run(opened(data, old=False))
    assert derivation == EARLIER
    assert terms_of(patterns) == [[1], [1]], "a check changes no record"

    second = serve(data)
    assert "rebuilt terms and signatures" in second.logged()
    assert second.stop() == 0
    derivation, patterns = asyncio.run(opened(data, old=False))
    assert derivation == DERIVATION_VERSION
    assert terms_of(patterns) == terms

    assert "rebuilds them" not in run(data, "check").stdout
    third = serve(data)
    assert "rebuilt terms and signatures" not in third.logged()
