"""A store of an older version: ``check`` tells of it, ``serve`` brings it up to date first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc

from lot_grpc.clock import SystemClock
from lot_grpc.pb.lot.v1 import pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import PATTERNS, collection_specs
from lot_grpc.services.store_contract import contract_row
from lot_grpc.storage.edge import EdgeStore
from tests.e2e.process import PATIENCE, Served, run
from tests.services.test_backfill import make_old

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
    """The terms that the store's contract names, and its patterns; first made old, or not."""
    store = EdgeStore(folder, SystemClock(), min_free_bytes=0)
    try:
        await store.ensure_collections(collection_specs(DIMENSIONS))
        if old:
            await make_old(store)
        patterns = await store.scroll(PATTERNS, None, (), limit=9, vectors=True)
        return (await contract_row(store))["embedding"]["tokenizer"], patterns
    finally:
        await store.close()


def test_a_store_of_an_older_version_is_brought_up_to_date_before_it_serves(serve, data):
    first = serve(data)
    save(first)
    assert first.stop() == 0
    terms, patterns = asyncio.run(opened(data, old=False))
    assert terms
    assert sorted(len(one.vectors) for one in patterns) == [2, 3]
    asyncio.run(opened(data, old=True))

    told = run(data, "check")
    assert told.code == 0, told
    assert "the next start brings its records up to date" in told.stdout
    terms, patterns = asyncio.run(opened(data, old=False))
    assert terms == ""
    assert [len(one.vectors) for one in patterns] == [1, 1], "a check changes no record"

    second = serve(data)
    assert "brought records of an older version up to date" in second.logged()
    assert second.stop() == 0
    terms, patterns = asyncio.run(opened(data, old=False))
    assert terms
    assert sorted(len(one.vectors) for one in patterns) == [2, 3]

    assert "up to date" not in run(data, "check").stdout
    third = serve(data)
    assert "up to date" not in third.logged()
