"""A stand-in for an OpenTelemetry collector, on loopback: it keeps what it is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import (
    metrics_service_pb2,
    metrics_service_pb2_grpc,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

PATIENCE = 30.0


class Collector(
    trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer
):
    """Spans and metrics as they arrived."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []
        self.endpoint = ""
        self._arrived = threading.Condition()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        traces = isinstance(request, trace_service_pb2.ExportTraceServiceRequest)
        with self._arrived:
            for resource in request.resource_spans if traces else request.resource_metrics:
                self.resources.append(attributes(resource.resource))
                for scope in resource.scope_spans if traces else resource.scope_metrics:
                    if traces:
                        self.spans += scope.spans
                    else:
                        self.metrics |= {metric.name: metric for metric in scope.metrics}
            self._arrived.notify_all()
        if traces:
            return trace_service_pb2.ExportTraceServiceResponse()
        return metrics_service_pb2.ExportMetricsServiceResponse()

    def trace(self, name: str) -> list[Any]:
        """The spans of the first trace whose root has this name, once the root has arrived."""
        with self._arrived:
            found = self._arrived.wait_for(lambda: self._root(name), PATIENCE)
            assert found, [span.name for span in self.spans]
            root = self._root(name)
            return [span for span in self.spans if span.trace_id == root.trace_id]

    def wait_for_metrics(self) -> None:
        with self._arrived:
            assert self._arrived.wait_for(lambda: self.metrics, PATIENCE)

    def _root(self, name: str) -> Any:
        return next((span for span in self.spans if span.name == name), None)


def attributes(holder: Any) -> dict[str, Any]:
    """Attributes as a dict."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(collector, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    collector.endpoint = f"http://127.0.0.1:{bound}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait(PATIENCE)
