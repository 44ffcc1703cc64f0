from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc.aio
import pytest
from qdrant_client import models
from qdrant_client.grpc.collections_pb2 import ListCollectionsResponse
from qdrant_client.grpc.collections_service_pb2_grpc import (
    CollectionsServicer,
    add_CollectionsServicer_to_server,
)

from lot_grpc.domain.errors import ContentionError, StartupError, StoreUnavailableError
from lot_grpc.ports import Rescore, SearchQuery
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.storage.qdrant_stamp import Stamp
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

NAME = SPEC.name


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.mark.parametrize("prefer_grpc", [True, False])
async def test_a_server_that_is_not_there_is_named_without_its_secrets(prefer_grpc: bool) -> None:
    port = closed_port()
    url = f"http://user:s3cret@127.0.0.1:{port}"
    store = QdrantStore(
        FixedClock(), url, prefer_grpc=prefer_grpc, grpc_port=port, timeout_seconds=2
    )
    with pytest.raises(StoreUnavailableError, match="check that it runs") as caught:
        await store.ensure_collections([SPEC])
    assert f"http://127.0.0.1:{port}" in caught.value.message
    assert "s3cret" not in caught.value.message
    assert caught.value.__cause__ is not None
    await store.close()


class Collections(CollectionsServicer):
    """As much of a Qdrant server as ``check`` asks for."""

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        return ListCollectionsResponse()


@asynccontextmanager
async def answering(port: int) -> AsyncIterator[None]:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    add_CollectionsServicer_to_server(Collections(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)


async def test_a_server_that_goes_away_and_comes_back_is_noticed_soon() -> None:
    """By the check that health follows, within its own time."""
    port = closed_port()
    store = QdrantStore(FixedClock(), f"http://127.0.0.1:{port}", grpc_port=port)
    try:
        for _ in range(2):
            async with answering(port):
                async with asyncio.timeout(5):
                    while True:
                        try:
                            await store.check()
                            break
                        except StoreUnavailableError:
                            await asyncio.sleep(0.05)
            with pytest.raises(StoreUnavailableError, match="check that it runs"):
                async with asyncio.timeout(5):
                    await store.check()
    finally:
        await store.close()


async def test_a_server_that_takes_the_call_and_never_answers_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lot_grpc.storage.qdrant._CHECK_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        store = QdrantStore(FixedClock(), f"http://127.0.0.1:{port}", grpc_port=port)
        with pytest.raises(StoreUnavailableError, match="TimeoutError"):
            await store.check()
        await store.close()


class Meddling:
    """A client that lets a stranger act right after each conditional write."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.strangers = 0
        self.before = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def set_payload(self, collection: str, **named: Any) -> Any:
        if self.before:
            await self._strangers(collection)
        result = await self.client.set_payload(collection, **named)
        if not self.before:
            await self._strangers(collection)
        return result

    async def _strangers(self, collection: str) -> None:
        for _ in range(self.strangers):
            [held] = await self.client.retrieve(collection, [sample_id(1)], True)
            payload = Stamp.of(held.payload).next().payload()
            await self.client.set_payload(collection, payload=payload, points=[sample_id(1)])

    async def info(self) -> models.VersionInfo:
        return models.VersionInfo(title="qdrant", version="1.16.3")


@pytest.fixture
async def store() -> QdrantStore:
    made = QdrantStore(FixedClock(), location=":memory:")
    await made.ensure_collections([SPEC])
    await made.put(NAME, [sample(1)])
    return made


async def test_a_write_is_recognised_although_others_followed(store: QdrantStore) -> None:
    meddling: Any = Meddling(store._client)
    store._collections[NAME]._client = meddling
    meddling.strangers = 10
    assert await store.update(NAME, "a", sample_id(1), set={"n": 5})
    meddling.strangers = 14
    with pytest.raises(StoreUnavailableError, match="outcome of this write is unknown"):
        await store.update(NAME, "a", sample_id(1), set={"n": 6})


async def test_a_write_that_is_always_overtaken_gives_up_and_writes_nothing(
    store: QdrantStore,
) -> None:
    meddling: Any = Meddling(store._client)
    store._collections[NAME]._client = meddling
    meddling.strangers, meddling.before = 1, True
    with pytest.raises(ContentionError):
        await store.update(NAME, "a", sample_id(1), set={"n": 5})
    assert (await store.get(NAME, "a", [sample_id(1)]))[sample_id(1)].payload == {"n": 1}


async def test_stamps_are_not_shown(store: QdrantStore) -> None:
    await store.update(NAME, "a", sample_id(1), set={"n": 2})
    [shown] = await store.scroll(NAME, None, (), limit=1)
    assert shown.payload == {"n": 2}
    [held] = await store._client.retrieve(NAME, [sample_id(1)], True)
    assert set(held.payload or {}) == {"n", "namespace", "_write", "_past"}


async def test_a_server_without_insert_only_writes_is_refused(store: QdrantStore) -> None:
    meddling: Any = Meddling(store._client)
    store._client = meddling
    with pytest.raises(StartupError, match=r"is 1\.16\.3, but 1\.17 or newer is required"):
        await store.ensure_collections([SPEC])


class Sharded:
    """A client whose collections have shards, each of which rescores what it prefetched itself.

    So more points come for rescoring than the prefetches' limits name together.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.batches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def query_batch_points(self, collection: str, requests: Any, **named: Any) -> Any:
        self.batches += 1
        requests = [one.model_copy(deep=True) for one in requests]
        for request in requests:
            for prefetch in request.prefetch or ():
                prefetch.limit *= 3
        return await self.client.query_batch_points(collection, requests=requests, **named)


async def test_a_hit_that_the_shards_leave_no_room_for_is_rescored(store: QdrantStore) -> None:
    await store.put(NAME, [sample(n) for n in range(1, 30)])
    sharded: Any = Sharded(store._client)
    store._client = sharded
    hits = SearchQuery("text", [-1.0, 0.0, 0.0, 0.0], 5)
    rescore = Rescore(["text"], [1.0, 0.0, 0.0, 0.0])  # the best of it are the worst of the hits
    found = await store.search(NAME, "a", [hits], rescore)
    assert found.cosines.keys() == found.hits[0].keys()
    for point, score in found.hits[0].items():
        assert found.cosines[point] == pytest.approx(-score, abs=1e-6)
    assert sharded.batches == 2
    all_of_them = replace(hits, limit=29)
    assert len((await store.search(NAME, "a", [all_of_them], rescore)).cosines) == 29
    assert sharded.batches == 3
