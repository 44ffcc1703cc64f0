"""Sends spans and metrics to an OpenTelemetry collector, by OTLP over gRPC.

One thread converts and sends; a call only puts its spans into a queue. Spans that cannot be sent,
or do not fit into the queue, are dropped and counted. Needs the extra ``otel``.

Names are those of the semantic conventions where they have one: ``rpc.server.call.duration`` for
the time of calls. The other metrics have the name of Prometheus with dots, as in
``lot.store.operation.duration``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as data
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from lot_grpc.telemetry.conventions import full_method, otel_name
from lot_grpc.telemetry.instruments import Counter, Gauge, Histogram, Labels, Metric
from lot_grpc.telemetry.metrics import ALL, CALL_DURATION, SPANS_LOST
from lot_grpc.telemetry.spans import Span

_log = structlog.get_logger()

_LIBRARY_LOG: Final = logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter")

_TRACES: Final = "traces"
_METRICS: Final = "metrics"

_SPANS_SECONDS: Final = 2.0
"""How often spans are sent."""
_BATCH: Final = 512
_QUEUE: Final = 8192
"""Spans that wait at most."""
_TIMEOUT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 3.0

_KINDS: Final = {kind.name.lower(): kind for kind in SpanKind}
_ATTRIBUTES: Final = {"method": "rpc.method", "code": "rpc.response.status_code"}
"""By label. All others are attributes of our own, as ``lot.kind``."""
_NO_EXTREMES: Final[Any] = (None, None)
"""The least and the greatest value, which are optional and not known."""
_CUMULATIVE: Final = data.AggregationTemporality.CUMULATIVE
_REASON_CHARACTERS: Final = 300


class OtlpSender:
    """Sends what ends and what is counted.

    Args:
        endpoint: URL of the collector; ``http`` is plain text.
        version: Of the service.
        metrics_seconds: How often metrics are sent; 0: never.
        refresh: Sets the gauges; it runs in the loop that makes this.
    """

    def __init__(
        self,
        endpoint: str,
        version: str,
        metrics_seconds: float,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._endpoint = endpoint
        self._metrics_seconds = metrics_seconds
        self._refresh = refresh
        self._calls_loop = asyncio.get_running_loop()
        self._spans: deque[Span] = deque()
        self._resource = Resource.create({"service.name": "lot-grpc", "service.version": version})
        self._scope = InstrumentationScope("lot_grpc", version)
        self._begun = time.time_ns()
        self._reason = ""
        self._failing: set[str] = set()
        """Of traces and metrics, what could not be sent the last time."""
        self._shut_down = False
        self._stop = threading.Event()
        insecure = not endpoint.startswith("https:")
        timeout = int(_TIMEOUT_SECONDS)
        self._span_exporter = OTLPSpanExporter(endpoint, insecure, timeout=timeout)
        self._metric_exporter = OTLPMetricExporter(endpoint, insecure, timeout=timeout)
        self._thread = threading.Thread(target=self._run, name="lot-otlp", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        # The library logs every failure; we log once that it fails, and why.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        _LIBRARY_LOG.setLevel(logging.ERROR)
        _LIBRARY_LOG.addFilter(self._remember)
        self._thread.start()

    def end(self, span: Span) -> None:
        """Receive a span that has ended. Never blocks."""
        if len(self._spans) >= _QUEUE:
            SPANS_LOST.add()
        else:
            self._spans.append(span)

    async def close(self) -> None:
        """Send the rest, unless the collector is away."""
        self._stop.set()
        if _TRACES in self._failing:
            self._shut()
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)
        self._shut()
        _LIBRARY_LOG.removeFilter(self._remember)

    def _shut(self) -> None:
        if not self._shut_down:
            self._shut_down = True
            self._span_exporter.shutdown(timeout_millis=0)
            self._metric_exporter.shutdown(timeout_millis=0)

    def _remember(self, record: logging.LogRecord) -> bool:
        self._reason = record.getMessage()[:_REASON_CHARACTERS]
        return False

    def _run(self) -> None:
        next_metrics = time.monotonic() + self._metrics_seconds
        while True:
            stopping = self._stop.wait(_SPANS_SECONDS)
            while self._spans and self._sent(_TRACES, self._send_spans):
                pass
            if self._metrics_seconds and (stopping or time.monotonic() >= next_metrics):
                next_metrics = time.monotonic() + self._metrics_seconds
                self._sent(_METRICS, self._send_metrics)
            if stopping:
                return

    def _sent(self, what: str, send: Callable[[], bool]) -> bool:
        """Send, and say once that it fails, and once that it works again."""
        self._reason = ""
        try:
            sent = send()
        except Exception as error:  # noqa: BLE001 - the thread must not end
            self._reason = repr(error)[:_REASON_CHARACTERS]
            sent = False
        if self._shut_down:
            pass  # that was the reason
        elif sent and what in self._failing:
            self._failing.remove(what)
            _log.info("telemetry is sent again", what=what, endpoint=self._endpoint)
        elif not sent and what not in self._failing:
            self._failing.add(what)
            _log.warning(
                "telemetry cannot be sent; unsent spans are dropped",
                what=what,
                endpoint=self._endpoint,
                cause=self._reason,
            )
        return sent

    def _send_spans(self) -> bool:
        batch = [self._spans.popleft() for _ in range(min(_BATCH, len(self._spans)))]
        sent = False
        try:
            result = self._span_exporter.export([self._readable(span) for span in batch])
            sent = result.name == "SUCCESS"
        finally:
            if not sent:
                SPANS_LOST.add(by=len(batch))
        return sent

    def _send_metrics(self) -> bool:
        running = asyncio.run_coroutine_threadsafe(_awaited(self._refresh), self._calls_loop)
        with suppress(TimeoutError):  # a busy loop: the last ones are sent
            running.result(_TIMEOUT_SECONDS)
        scope = data.ScopeMetrics(self._scope, list(self._metrics()), "")
        sent = data.MetricsData([data.ResourceMetrics(self._resource, [scope], "")])
        return self._metric_exporter.export(sent).name == "SUCCESS"

    # --- spans ------------------------------------------------------------------------------------

    def _readable(self, span: Span) -> ReadableSpan:
        failed = Status(StatusCode.ERROR, span.error) if span.error else Status()
        return ReadableSpan(
            span.name,
            self._context(span, span.id),
            self._parent(span),
            self._resource,
            span.attributes | ({"error.type": span.error} if span.error else {}),
            kind=_KINDS[span.kind.value],
            status=failed,
            start_time=span.begin_time,
            end_time=span.end_time,
            instrumentation_scope=self._scope,
        )

    def _parent(self, span: Span) -> SpanContext | None:
        if span.parent is not None:
            return self._context(span, span.parent.id)
        if span.trace.parent is not None:
            return self._context(span, span.trace.parent.span_id, remote=True)
        return None

    def _context(self, span: Span, id: int, *, remote: bool = False) -> SpanContext:
        remote_parent = span.trace.parent
        state = TraceState.from_header([remote_parent.state]) if remote_parent else None
        return SpanContext(span.trace.id, id, remote, TraceFlags(TraceFlags.SAMPLED), state)

    # --- metrics ----------------------------------------------------------------------------------

    def _metrics(self) -> Iterator[data.Metric]:
        now = time.time_ns()
        for metric in ALL:
            points: Sequence[Any]
            shape: Any
            if isinstance(metric, Histogram):
                points = [
                    data.HistogramDataPoint(
                        _attributes(metric, key),
                        self._begun,
                        now,
                        sum(series.counts),
                        series.total,
                        series.counts,
                        metric.bounds,
                        *_NO_EXTREMES,
                    )
                    for key, series in metric.values().items()
                ]
                shape = data.Histogram(points, _CUMULATIVE)
            elif isinstance(metric, Counter | Gauge):
                points = [
                    data.NumberDataPoint(_attributes(metric, key), self._begun, now, value)
                    for key, value in metric.values().items()
                ]
                shape = (
                    data.Sum(points, _CUMULATIVE, is_monotonic=True)
                    if isinstance(metric, Counter)
                    else data.Gauge(points)
                )
            if points:
                name, unit = otel_name(metric)
                yield data.Metric(name, metric.help, unit, shape)


async def _awaited(refresh: Callable[[], Awaitable[None]]) -> None:
    await refresh()


def _attributes(metric: Metric, key: Labels) -> dict[str, str]:
    attributes = {
        _ATTRIBUTES.get(label, f"lot.{label}"): value
        for label, value in zip(metric.labels, key, strict=True)
        if value
    }
    if "." in (method := attributes.get("rpc.method", "")):
        attributes["rpc.method"] = full_method(method)
    if metric is CALL_DURATION:
        attributes["rpc.system.name"] = "grpc"
        if attributes["rpc.response.status_code"] != "OK":
            attributes["error.type"] = attributes["rpc.response.status_code"]
    return attributes
