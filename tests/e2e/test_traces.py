"""Traces and metrics of a real server, as a collector receives them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lot_client import AsyncLotClient, LotClient, LotError
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.e2e import process
from tests.e2e.conftest import Serve
from tests.e2e.process import Served, wait_for
from tests.server.service import reaching
from tests.telemetry.collector import Collector, attributes, collecting

RECALL = "lot.v1.PatternService/RecallPatterns"
SECRET = "the words of an agent"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("traced")
    settings = {"LOT_OTEL_ENDPOINT": collector.endpoint, "LOT_OTEL_METRICS_SECONDS": "1"}
    served = process.serve(folder / "data", folder / "server.log", settings)
    asyncio.run(some_calls(served.address))
    yield served
    assert served.stop() == 0, served.logged()[-4000:]


async def some_calls(address: str) -> None:
    async with reaching(address) as lot:
        await lot.patterns.SavePattern(pattern={"task": SECRET}, pattern_id="p")
        found = await lot.patterns.RecallPatterns(query=SECRET, rerank=True)
        await lot.patterns.RecordOutcome(
            pattern_ids=["p"],
            outcome=outcome_pb2.OUTCOME_SUCCESS,
            retrieval_id=found.retrieval_id,
        )


def test_a_recall_is_a_span_with_children_for_embedding_store_and_ranking(
    traced: Served, collector: Collector
) -> None:
    spans = collector.trace(RECALL)
    [root] = [span for span in spans if not span.parent_span_id]
    assert root.kind == root.SPAN_KIND_SERVER
    given = attributes(root)
    assert given.pop("gen_ai.memory.store.id").startswith("test-")
    assert given.pop("lot.retrieval.id").startswith("r")
    assert len(given.pop("lot.call.id")) > 8
    assert given == {
        "rpc.system.name": "grpc",
        "rpc.method": RECALL,
        "rpc.response.status_code": "OK",
        "gen_ai.operation.name": "search_memory",
        "lot.hits": 1,
    }
    by_id = {span.span_id: span for span in spans}
    children = {span.name: span for span in spans if span is not root}
    assert {"embeddings BAAI/bge-small-en-v1.5", "search patterns", "rerank", "ranking"} <= set(
        children
    )
    for span in children.values():
        parent = by_id[span.parent_span_id]
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    assert attributes(children["search patterns"]) == {
        "db.system.name": "qdrant",
        "db.operation.name": "search",
        "db.collection.name": "patterns",
    }
    embedding = attributes(children["embeddings BAAI/bge-small-en-v1.5"])
    assert embedding["gen_ai.operation.name"] == "embeddings"


def test_an_outcome_is_connected_to_its_recall(traced: Served, collector: Collector) -> None:
    recall = attributes(collector.trace(RECALL)[-1])
    [root] = [
        span
        for span in collector.trace("lot.v1.PatternService/RecordOutcome")
        if not span.parent_span_id
    ]
    outcome = attributes(root)
    assert outcome["lot.outcome"] == "success"
    assert outcome["lot.outcome.id"].startswith("o")
    assert outcome["lot.retrieval.id"] == recall["lot.retrieval.id"]
    assert "gen_ai.operation.name" not in outcome


def test_no_span_holds_contents(traced: Served, collector: Collector) -> None:
    collector.trace("lot.v1.PatternService/RecordOutcome")
    for span in collector.spans:
        assert SECRET not in str(span)


def test_metrics_arrive_with_the_names_of_the_conventions(
    traced: Served, collector: Collector
) -> None:
    collector.wait_for_metrics()
    metric = collector.metrics["rpc.server.call.duration"]
    assert metric.unit == "s"
    points = {attributes(one)["rpc.method"]: one for one in metric.histogram.data_points}
    assert points[RECALL].count == 1
    assert sum(points[RECALL].bucket_counts) == 1
    assert len(points[RECALL].bucket_counts) == len(points[RECALL].explicit_bounds) + 1
    assert attributes(points[RECALL]) == {
        "rpc.method": RECALL,
        "rpc.system.name": "grpc",
        "rpc.response.status_code": "OK",
    }
    assert collector.metrics["lot.calls"].sum.is_monotonic
    assert collector.metrics["lot.store.used.size"].unit == "By"
    assert {one["service.name"] for one in collector.resources} == {"lot-grpc"}


def test_the_log_line_of_a_call_names_its_trace(traced: Served, collector: Collector) -> None:
    root = collector.trace(RECALL)[-1]
    assert f'"trace_id": "{root.trace_id.hex()}"' in traced.logged()


@pytest.mark.parametrize("kind", [AsyncLotClient, LotClient])
async def test_the_span_of_a_python_client_is_the_parent(
    traced: Served, collector: Collector, kind: Any
) -> None:
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("agent") as span:
        await a_missing_pattern(kind(traced.address))
    context = span.get_span_context()
    assert isinstance(span, trace.Span)
    wait_for(lambda: any(context.span_id == parent_of(one) for one in collector.spans))
    [child] = [one for one in collector.spans if context.span_id == parent_of(one)]
    assert int.from_bytes(child.trace_id, "big") == context.trace_id
    assert attributes(child)["rpc.response.status_code"] == "NOT_FOUND"
    assert attributes(child)["lot.reason"] == "PATTERN_NOT_FOUND"
    assert child.status.code == child.status.STATUS_CODE_UNSET, "the server did what it should"


async def a_missing_pattern(client: Any) -> None:
    """Ask for one, with either client."""
    if isinstance(client, AsyncLotClient):
        with pytest.raises(LotError):
            await client.get_pattern("missing")
        await client.close()
    else:
        with pytest.raises(LotError):
            client.get_pattern("missing")
        client.close()


def parent_of(span: Any) -> int:
    return int.from_bytes(span.parent_span_id, "big")


async def test_a_caller_that_does_not_sample_is_not_traced(
    traced: Served, collector: Collector
) -> None:
    ids = ("1" * 32, "2" * 32)
    async with reaching(traced.address) as lot:
        request = b""
        for trace_id, sampled in zip(ids, ("00", "01"), strict=True):
            metadata = (("traceparent", f"00-{trace_id}-{'3' * 16}-{sampled}"),)
            await lot.raw("/lot.v1.AdminService/GetServerInfo")(request, metadata=metadata)
    wait_for(lambda: any(span.trace_id.hex() == ids[1] for span in collector.spans))
    assert not any(span.trace_id.hex() == ids[0] for span in collector.spans)


def test_contents_are_sent_only_if_the_operator_says_so(serve: Serve, data: Path) -> None:
    with collecting() as collector:
        settings = {"LOT_OTEL_ENDPOINT": collector.endpoint, "LOT_OTEL_CONTENTS": "true"}
        served = serve(data, settings)
        asyncio.run(some_calls(served.address))
        [root] = [span for span in collector.trace(RECALL) if not span.parent_span_id]
        assert attributes(root)["gen_ai.memory.query.text"] == SECRET
        assert served.stop() == 0


def test_a_collector_that_is_away_costs_one_line_and_nothing_else(serve: Serve, data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {
        "LOT_OTEL_ENDPOINT": f"http://127.0.0.1:{port}",
        "LOT_OTEL_METRICS_SECONDS": "1",
    }
    served = serve(data, settings)
    asyncio.run(some_calls(served.address))
    wait_for(lambda: "cannot be sent" in served.logged())
    asyncio.run(some_calls(served.address))
    with collecting(port) as collector:
        wait_for(lambda: "sent again" in served.logged())
        collector.wait_for_metrics()
        [lost] = collector.metrics["lot.spans.lost"].sum.data_points
        assert lost.as_int > 0
        assert served.stop() == 0
    log = served.logged()
    for signal in ("traces", "metrics"):
        said = [line for line in log.splitlines() if f'"what": "{signal}"' in line]
        assert sum("cannot be sent" in line for line in said) <= 1
        assert sum("sent again" in line for line in said) <= 1
    assert "opentelemetry" not in log
    assert "Traceback" not in log
