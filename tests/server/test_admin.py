"""AdminService on the wire."""

from __future__ import annotations

import math
import operator

import pytest

from lot_grpc.domain.errors import EmbeddingFailedError, StorageFullError
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.server.limits import Limits
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.service import SERVICES, serving
from tests.server.wire import failure


def _written(info: pb.GetServerInfoResponse) -> dict[str, int]:
    """The counts, without the retrievals of other tests, which are written in the background."""
    return {kind: count for kind, count in info.record_counts.items() if kind != "RETRIEVAL"}


async def test_the_server_says_what_it_is_and_holds(lot):
    before = await lot.admin.GetServerInfo()
    await lot.patterns.SavePattern(pattern={"task": "t"})
    await lot.memories.CreateMemory(memory={"content": "c"})
    await lot.memories.SaveErrorSolution(error_solution={"error_message": "e", "resolution": "r"})
    await lot.episodes.RecordEpisode(
        episode={"task": "t", "status": 2}, events=[{"event_type": "x"}] * 3
    )
    told = await lot.admin.GetServerInfo()
    grown = {
        resource_kind: count - before.record_counts[resource_kind]
        for resource_kind, count in _written(told).items()
    }
    assert {resource_kind: count for resource_kind, count in grown.items() if count} == {
        "PATTERN": 1, "MEMORY": 1, "EPISODE": 1, "EPISODE_EVENT": 3,
        "ERROR_SOLUTION": 1,
    }  # fmt: skip
    assert told.version
    assert told.contract_version == "lot.v1"
    assert told.model
    assert told.dimensions > 0
    assert told.schema_version == 9
    assert told.store.writable
    assert told.start_time.ToMicroseconds() <= told.server_time.ToMicroseconds()


async def test_counts_are_of_the_whole_server_whatever_the_namespace(lot):
    await lot.patterns.SavePattern(pattern={"task": "t"})
    here = await lot.admin.GetServerInfo()
    there = await lot.on(f"{lot.namespace}-other").admin.GetServerInfo()
    assert _written(here) == _written(there)
    assert _written(here)["PATTERN"]


async def test_capabilities_are_the_rpcs_that_are_carried_out(lot):
    told = await lot.admin.GetServerInfo()
    every = {
        f"{service.name}.{method.name}"
        for service in SERVICES.values()
        for method in service.methods
    }
    assert set(told.capabilities) <= every
    assert list(told.capabilities) == sorted(set(told.capabilities))
    assert "PatternService.RecallPatterns" in told.capabilities


async def test_limits_are_told_as_they_hold():
    limits = Limits(
        max_message_bytes=123_456, max_concurrent_calls=7, max_streams=3, max_call_seconds=1.5
    )
    async with serving(limits=limits, max_batch_items=5) as lot:
        told = (await lot.admin.GetServerInfo()).limits
    assert told.max_message_bytes == 123_456
    assert told.max_concurrent_calls == 7
    assert told.max_streams == 3
    assert told.max_call_duration.ToMilliseconds() == 1500
    assert told.max_batch_items == 5
    assert (told.max_limit, told.max_page_size, told.max_struct_depth) == (100, 1000, 16)
    assert told.max_embedding_tokens == 512


async def test_a_server_that_works_is_ready(lot):
    answer = await lot.admin.CheckReady()
    assert answer.ready
    assert {check.name for check in answer.checks} == {"model", "store", "indexing"}
    assert all(check.ok for check in answer.checks)


class Full(InMemoryStore):
    """A store whose disk is full."""

    async def check(self) -> None:
        raise StorageFullError(1, 2**20, "/data")


class Broken(HashingEmbedder):
    """A model that cannot embed."""

    async def embed_query(self, text):
        raise EmbeddingFailedError("the model could not embed a text")


class WithoutTokenCounts(HashingEmbedder):
    """A model that does not tell how it tokenizes."""

    async def count_tokens(self, texts):
        return None


async def test_a_server_that_cannot_write_or_embed_says_so_with_code_ok():
    clock = FixedClock()
    async with serving(Full(clock), clock=clock) as lot:
        answer = await lot.admin.CheckReady()
        assert not answer.ready
        [failed] = [check for check in answer.checks if not check.ok]
        assert failed.name == "store"
        assert "free some space" in failed.detail
    async with serving(embedder=Broken()) as lot:
        answer = await lot.admin.CheckReady()
        assert [check.name for check in answer.checks if not check.ok] == ["model"]
        failure_ = await failure(lot.patterns.RecallPatterns(query="q"))
        assert (failure_.code, failure_.reason) == ("INTERNAL", "EMBEDDING_FAILED")


async def test_compacting_says_that_it_must_be_done_offline_or_by_qdrant_itself(lot):
    told = await lot.admin.GetServerInfo()
    if told.backend == "qdrant":
        assert not (await lot.admin.Compact()).compacted
        return
    failed = await failure(lot.admin.Compact())
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "COMPACT_OFFLINE_ONLY")
    assert failed.metadata == {"backend": told.backend}
    assert "lot-grpc compact" in failed.message


@pytest.mark.parametrize("method", ["GetServerInfo", "CheckReady", "Compact", "Embed"])
async def test_a_wrong_namespace_is_refused_by_calls_about_the_whole_server_too(lot, method):
    given = {"items": [{"text": "t"}]} if method == "Embed" else {}
    failed = await failure(getattr(lot.admin, method)(namespace="no space", **given))
    assert failed.fields == {"namespace": "string.pattern"}


# --- Embed ------------------------------------------------------------------------------------

DOCUMENT, QUERY, CODE = (pb.EMBEDDING_USE_DOCUMENT, pb.EMBEDDING_USE_QUERY, pb.EMBEDDING_USE_CODE)


async def embedded(lot, *items, **named):
    return await lot.admin.Embed(items=[{"text": t, "use": use} for t, use in items], **named)


async def test_texts_are_embedded_as_they_are_stored_and_searched_with(lot):
    task, code, query = "Café: retry it", "def retryRequest(n_times): pass", "do it again"
    await lot.patterns.SavePattern(pattern={"task": task, "code": code})
    [stored] = [
        record.vectors
        async for message in lot.admin.Export(include_vectors=True)
        for record in message.records
        if record.HasField("pattern")
    ]
    answer = await embedded(lot, (query, QUERY), (task, DOCUMENT), (code, CODE))
    searched, text, spoken = answer.embeddings
    assert list(text.vector) == pytest.approx(stored["text"].values, abs=1e-6)
    assert list(spoken.vector) == pytest.approx(stored["code"].values, abs=1e-6)
    [hit] = (
        await lot.patterns.RecallPatterns(query=query, ranking=outcome_pb2.RANKING_SIMILARITY)
    ).hits
    assert max(0.0, *searched.similarities[1:]) == pytest.approx(hit.similarity, abs=1e-5)


async def test_the_answer_of_embed_says_which_model_it_is_and_compares_each_with_each(lot):
    info = await lot.admin.GetServerInfo()
    texts = ("Cafe\u0301", "Caf\u00e9", "water the plants")
    answer = await embedded(lot, *((text, 0) for text in texts), (texts[0], QUERY))
    assert (answer.model, answer.dimensions) == (info.model, info.dimensions)
    vectors = [list(one.vector) for one in answer.embeddings]
    assert {len(vector) for vector in vectors} == {info.dimensions}
    assert vectors[0] == vectors[1] != vectors[2]
    assert (vectors[0] == vectors[3]) == (answer.query_prefix == "")
    for one, row in zip(vectors, (one.similarities for one in answer.embeddings), strict=True):
        cosines = [math.fsum(map(operator.mul, one, other)) for other in vectors]
        assert list(row) == pytest.approx(cosines, abs=1e-5)
        assert all(-1 <= cosine <= 1 for cosine in row)


async def test_embed_leaves_the_vectors_out_and_says_what_was_not_read(lot):
    answer = await embedded(lot, ("word " * 5_000, 0), ("word", 0), omit_vectors=True)
    assert [(len(one.vector), one.truncated) for one in answer.embeddings] == [
        (0, True),
        (0, False),
    ]
    assert [len(one.similarities) for one in answer.embeddings] == [2, 2]


async def test_embed_counts_the_tokens_that_the_model_reads(lot):
    info = await lot.admin.GetServerInfo()
    most = info.limits.max_embedding_tokens
    texts = [("word", 0), ("word word", 0), ("word", QUERY), ("aB", CODE), ("word " * most, 0)]
    found = [one.token_count for one in (await embedded(lot, *texts)).embeddings]
    assert found[1] == found[0] + 1
    assert found[2] >= found[0]
    assert found[3] == found[1], "code counts as the words that it is split into"
    assert found[4] == found[0] + most - 1, "also what is read in further windows, or not at all"


async def test_embed_leaves_a_count_out_that_it_does_not_know():
    async with serving(embedder=WithoutTokenCounts()) as lot:
        [one] = (await embedded(lot, ("word", 0))).embeddings
        assert not one.HasField("token_count")


@pytest.mark.parametrize(
    ("items", "fields"),
    [
        ([], {"items": "repeated.min_items"}),
        ([{"text": "t"}] * 101, {"items": "repeated.max_items"}),
        ([{"text": "t"}, {}], {"items[1].text": "string.min_len"}),
        ([{"text": "ä" * 32_769}], {"items[0].text": "string.max_bytes"}),
        ([{"text": "t", "use": 4}], {"items[0].use": "enum.defined_only"}),
    ],
    ids=["none", "too many", "empty", "too long", "unknown use"],
)
async def test_embed_refuses_what_it_cannot_embed(lot, items, fields):
    assert (await failure(lot.admin.Embed(items=items))).fields == fields


async def test_as_many_items_as_are_allowed_are_embedded(lot):
    answer = await embedded(lot, *((f"text {n}", n % 4) for n in range(100)))
    assert len(answer.embeddings) == 100


async def test_embed_fails_when_the_model_does():
    async with serving(embedder=Broken()) as lot:
        failed = await failure(embedded(lot, ("t", QUERY)))
        assert (failed.code, failed.reason) == ("INTERNAL", "EMBEDDING_FAILED")
