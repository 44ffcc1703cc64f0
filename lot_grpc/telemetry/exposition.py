"""All metrics in the formats of Prometheus: its text format and OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from lot_grpc.telemetry.instruments import Counter, Gauge, Histogram
from lot_grpc.telemetry.metrics import ALL


class _Metrics(Collector):
    """Reads the instruments."""

    def collect(self) -> Iterator[Family]:
        for metric in ALL:
            labels = list(metric.labels)
            if isinstance(metric, Counter):
                counter = CounterMetricFamily(metric.name, metric.help, labels=labels)
                for key, value in metric.values().items():
                    counter.add_metric(key, value)
                yield counter
            elif isinstance(metric, Gauge):
                gauge = GaugeMetricFamily(metric.name, metric.help, labels=labels)
                for key, value in metric.values().items():
                    gauge.add_metric(key, value)
                yield gauge
            elif isinstance(metric, Histogram):
                histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
                bounds = [*(str(float(bound)) for bound in metric.bounds), "+Inf"]
                for key, series in metric.values().items():
                    cumulative = accumulate(series.counts)
                    buckets = list(zip(bounds, cumulative, strict=True))
                    histogram.add_metric(list(key), buckets, series.total)
                yield histogram


class Exposition:
    """Renders the metrics of this process, with the usual ones of processes and of Python."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(_Metrics())

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics in a format that ``accept`` names, and its content type."""
        try:
            encode, content_type = choose_encoder(accept)
        except Exception:  # noqa: BLE001 - it fails at versions that are no numbers
            encode, content_type = choose_encoder("")
        return encode(self._registry), content_type
