"""What is sent to a collector that takes only a part, or cannot be sent at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from structlog.testing import capture_logs

from lot_grpc.telemetry import otlp
from lot_grpc.telemetry.metrics import SPANS_LOST
from lot_grpc.telemetry.otlp import OtlpSender
from lot_grpc.telemetry.spans import RemoteParent, Span, Tracer
from tests.telemetry.collector import PATIENCE, Collector


async def refresh() -> None:
    """There are no gauges."""


@pytest.fixture
async def only_traces() -> AsyncIterator[Collector]:
    """A collector that does not know the service for metrics, as one of traces only."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collector
    await asyncio.to_thread(server.stop(None).wait, PATIENCE)


def make_span(sender: OtlpSender, parent: RemoteParent | None = None) -> Span:
    made = Tracer(sender.end, 1.0, contents=False).begin("s", parent, {})
    assert made is not None
    with made:
        return made


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_collector_that_takes_no_metrics_is_named_once(
    only_traces: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not again after each batch of traces, which it does take."""
    monkeypatch.setattr(otlp, "_SPANS_SECONDS", 0.01)
    refreshed = 0

    async def refresh() -> None:
        nonlocal refreshed
        refreshed += 1

    with capture_logs() as lines:
        sender = OtlpSender(only_traces.endpoint, "1", 0.01, refresh)
        sender.start()
        for number in range(1, 6):
            before = refreshed
            make_span(sender)
            await until(lambda n=number, b=before: len(only_traces.spans) == n and refreshed > b)
        await sender.close()
    [line] = lines
    assert (line["what"], line["log_level"]) == ("metrics", "warning")
    assert "UNIMPLEMENTED" in line["cause"]


async def test_what_is_not_sent_because_of_the_end_is_not_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "_SPANS_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent, capture_logs() as lines:
        monkeypatch.setattr(otlp, "_TIMEOUT_SECONDS", 1.0)
        sender = OtlpSender(f"http://127.0.0.1:{silent.getsockname()[1]}", "1", 60, refresh)
        make_span(sender)
        sender.start()
        await until(lambda: lines)
        await sender.close()
    assert [line["what"] for line in lines] == ["traces"]


async def test_a_batch_that_cannot_be_converted_counts_as_lost_and_ends_nothing(
    only_traces: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_SPANS_SECONDS", 0.01)
    before = SPANS_LOST.values().get((), 0)
    with capture_logs() as lines:
        sender = OtlpSender(only_traces.endpoint, "1", 0, refresh)
        make_span(sender).attributes = None  # type: ignore[assignment]
        sender.start()
        await until(lambda: SPANS_LOST.values().get((), 0) == before + 1)
        make_span(sender)
        await until(lambda: only_traces.spans and len(lines) == 2)
        await sender.close()
    assert [line["event"].partition(";")[0] for line in lines] == [
        "telemetry cannot be sent",
        "telemetry is sent again",
    ]


@pytest.mark.parametrize("state", ["=,=;a=b", "\x80", "a=" + "x" * 600, ",".join(["a=b"] * 99)])
async def test_a_callers_invalid_state_does_not_lose_the_span(
    only_traces: Collector, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_SPANS_SECONDS", 0.01)
    sender = OtlpSender(only_traces.endpoint, "1", 0, refresh)
    sender.start()
    make_span(sender, RemoteParent(5, 6, True, state))
    await until(lambda: only_traces.spans)
    await sender.close()
    assert only_traces.spans[0].parent_span_id == (6).to_bytes(8, "big")
