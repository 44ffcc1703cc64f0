"""The metrics of a real server that did everything, and each query of the dashboard and alerts."""

from __future__ import annotations

import asyncio
import copy
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc.aio
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.telemetry.instruments import Histogram
from lot_grpc.telemetry.metrics import ALL
from tests.e2e import process
from tests.e2e.process import Served, wait_for
from tests.server.examples import EXAMPLES, prepare
from tests.server.service import SERVICES, Lot, reaching
from tests.telemetry.promql import Samples, evaluate
from tests.telemetry.queries import Query, alert_queries, panel_queries

TARGET = {"job": "lot-grpc", "instance": "here"}
STEP = 100.0
"""Seconds that the scrapes of the tests pretend to be apart."""

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def url_of(served: Served) -> str:
    found = re.search(r'"url": "(http://[^"]+/metrics)"', served.logged())
    assert found, served.logged()
    return found[1]


def fetch(url: str, accept: str = "text/plain; version=0.0.4") -> tuple[str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=process.PATIENCE) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def value(text: str, name: str, **labels: str) -> float:
    """The sum of the samples of this name that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def every_call(address: str) -> None:
    """Every RPC once, and what makes figures of its own."""
    async with reaching(address) as lot:
        await prepare(lot)
        for name, fields in EXAMPLES.items():
            if name not in ("AdminService.Reindex", "AdminService.ClearNamespace"):
                await one_call(lot, name, fields)
        await record_events(lot)
        for rerank in (False, False, True):
            found = await lot.patterns.RecallPatterns(query="open the door", rerank=rerank)
        await lot.patterns.SavePattern(pattern={"task": "open the door"}, pattern_id="door")
        found = await lot.patterns.RecallPatterns(query="open the door")
        for _ in range(2):
            await lot.patterns.RecordOutcome(
                pattern_ids=["door"],
                outcome=outcome_pb2.OUTCOME_SUCCESS,
                retrieval_id=found.retrieval_id,
            )
        with suppress(grpc.aio.AioRpcError):
            await lot.patterns.GetPattern(pattern_id="nowhere")
        for path in ("/lot.v1.PatternService/Invented", "/lot.v9.Other/Invented"):
            with suppress(grpc.aio.AioRpcError):
                await lot.raw(path)(b"")


async def one_call(lot: Lot, name: str, fields: Mapping[str, Any]) -> None:
    service, _, method = name.partition(".")
    descriptor = SERVICES[service].methods_by_name[method]
    request = descriptor.input_type._concrete_class(**fields)
    path = f"/{SERVICES[service].full_name}/{method}"
    shape = (
        f"{'stream' if descriptor.client_streaming else 'unary'}"
        f"_{'stream' if descriptor.server_streaming else 'unary'}"
    )
    raw = request.SerializeToString()
    with suppress(grpc.aio.AioRpcError):
        call = getattr(lot.channel, shape)(path)(
            iter([raw]) if descriptor.client_streaming else raw, timeout=20
        )
        if descriptor.server_streaming:
            await asyncio.wait_for(call.read(), 20)
            call.cancel()
        else:
            await call


async def record_events(lot: Lot) -> None:
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="long")
    for number in range(3):
        await lot.episodes.RecordEvent(episode_id="long", event={"event_type": f"step-{number}"})


@dataclass
class Scraped:
    """A server that has done everything, and what was scraped from it meanwhile."""

    served: Served
    url: str
    samples: Samples
    texts: list[str]
    last: float


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    folder = tmp_path_factory.mktemp("metrics")
    served = process.serve(
        folder / "data",
        folder / "server.log",
        {"LOT_METRICS_ADDRESS": "127.0.0.1:0", "LOT_MIN_FREE_BYTES": "1000000"},
    )
    url = url_of(served)
    samples, texts = Samples(), []
    at = 0.0
    for _ in range(3):
        text, _ = fetch(url)
        texts.append(text)
        at += STEP
        samples.scrape(text, at, **TARGET)
        if len(texts) < 3:
            asyncio.run(every_call(served.address))
            # Recalls are written a moment later, and the figures of the store read after that.
            wait_for(lambda: value(fetch(url)[0], "lot_stored_records", kind="retrieval") > 0)
    yield Scraped(served, url, samples, texts, at)
    assert served.stop() == 0, served.logged()[-4000:]


def test_both_formats_are_well_formed_and_hold_every_metric(scraped: Scraped) -> None:
    text, kind = fetch(scraped.url)
    open_text, open_kind = fetch(scraped.url, OPENMETRICS)
    assert kind.startswith("text/plain")
    assert open_kind.startswith("application/openmetrics-text")
    assert open_text.endswith("# EOF\n")
    for families in (text_string_to_metric_families(text), openmetrics_families(open_text)):
        names = {family.name for family in families}
        assert {metric.name for metric in ALL} <= names
        assert {"process_resident_memory_bytes", "python_gc_collections"} <= names


def test_the_buckets_of_a_histogram_are_cumulative_and_agree_with_its_count(
    scraped: Scraped,
) -> None:
    names = {metric.name for metric in ALL if isinstance(metric, Histogram)}
    for family in text_string_to_metric_families(scraped.texts[-1]):
        if family.name not in names:
            continue
        series: dict[tuple[tuple[str, str], ...], list[float]] = {}
        counts = {}
        for sample in family.samples:
            key = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
            if sample.name.endswith("_bucket"):
                series.setdefault(key, []).append(sample.value)
            elif sample.name.endswith("_count"):
                counts[key] = sample.value
        assert counts == {key: buckets[-1] for key, buckets in series.items()}
        assert all(buckets == sorted(buckets) for buckets in series.values())


def test_every_rpc_has_a_series_from_the_start(scraped: Scraped) -> None:
    first = scraped.texts[0]
    for name, service in SERVICES.items():
        for rpc in service.methods:
            label = f'lot_calls_total{{code="OK",method="{name}.{rpc.name}",reason=""}} 0.0'
            assert label in first


def test_calls_are_counted_by_method_code_and_reason(scraped: Scraped) -> None:
    text = scraped.texts[-1]
    recalls = value(text, "lot_calls_total", method="PatternService.RecallPatterns", code="OK")
    assert recalls == 10  # five in each of two rounds
    missing = {"code": "NOT_FOUND", "reason": "PATTERN_NOT_FOUND"}
    assert value(text, "lot_calls_total", method="PatternService.GetPattern", **missing) >= 2
    timed = "lot_call_duration_seconds_count"
    assert value(text, timed, method="PatternService.RecallPatterns", code="OK") == recalls
    assert value(text, "lot_request_bytes_total", method="PatternService.RecallPatterns") > 0
    assert value(text, "lot_response_bytes_total", method="PatternService.RecallPatterns") > 0


def test_names_that_callers_invent_are_no_labels(scraped: Scraped) -> None:
    text = scraped.texts[-1]
    assert "Invented" not in text
    assert value(text, "lot_calls_total", method="_OTHER", reason="NOT_IMPLEMENTED") == 4


def test_no_label_holds_what_a_caller_wrote(scraped: Scraped) -> None:
    for word in ("door", "test-", "nowhere", "step-"):
        assert word not in scraped.texts[-1]


def test_learning_is_counted_as_it_happened(scraped: Scraped) -> None:
    text = scraped.texts[-1]
    assert value(text, "lot_recalls_helped_total") == 2, "two successes of one recall count once"
    assert value(text, "lot_outcomes_total", kind="pattern", outcome="success") >= 4
    assert value(text, "lot_events_recorded_total") >= 6
    assert value(text, "lot_recalls_total", operation="recall_patterns") == 10
    assert value(text, "lot_stored_records", kind="pattern") > 0
    assert value(text, "lot_stored_bytes", kind="pattern") > 0


def test_the_cache_of_embeddings_shows(scraped: Scraped) -> None:
    text = scraped.texts[-1]
    assert value(text, "lot_embedded_texts_total", role="query", source="cache") > 0
    assert value(text, "lot_embedded_texts_total", role="query", source="model") > 0
    waited = value(text, "lot_embedding_wait_seconds_count")
    assert waited == value(text, "lot_embedded_texts_total", source="model")


def test_nothing_is_in_flight_once_all_calls_have_ended(scraped: Scraped) -> None:
    wait_for(lambda: value(fetch(scraped.url)[0], "lot_streams_open") == 0)
    assert value(fetch(scraped.url)[0], "lot_calls_in_flight") == 0


async def test_an_open_stream_is_counted_while_it_is_open(scraped: Scraped) -> None:
    name = "MemoryService.WatchChanges"
    before = await asyncio.to_thread(fetch, scraped.url)
    async with reaching(scraped.served.address) as lot:
        watch = lot.memories.WatchChanges()
        await watch.read()
        text, _ = await asyncio.to_thread(fetch, scraped.url)
        watch.cancel()
    assert value(text, "lot_streams_open") == 1
    sent = {"method": name, "direction": "sent"}
    growth = value(text, "lot_stream_messages_total", **sent) - value(
        before[0], "lot_stream_messages_total", **sent
    )
    assert growth == 1
    calls = "lot_calls_total"
    assert value(text, calls, method=name) == value(before[0], calls, method=name)


@pytest.mark.parametrize(
    ("path", "status"), [("/", 404), ("/metrics/x", 404), ("/metrics?name=x", 200)]
)
def test_only_the_metrics_are_served(scraped: Scraped, path: str, status: int) -> None:
    base = scraped.url.removesuffix("/metrics")
    assert status_of(f"{base}{path}") == status


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=process.PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


# --- the dashboard and the alerts -----------------------------------------------------------------

ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "lot_store_errors_total": {"operation": "search", "reason": "STORE_UNAVAILABLE"},
    "lot_redactions_total": {"rule": "aws"},
    "lot_certificate_expiry_timestamp_seconds": {},
}
"""What a healthy server without keys, certificates and redaction has no series of."""


@pytest.mark.parametrize("query", panel_queries(), ids=str)
def test_a_panel_shows_something(scraped: Scraped, query: Query) -> None:
    samples = copy.deepcopy(scraped.samples)
    for name, labels in ELSEWHERE.items():
        for at in (STEP, 2 * STEP, 3 * STEP):
            samples.add(name, at, at, **labels, **TARGET)
    assert evaluate(samples, query.text, scraped.last), query.text


Change = tuple[str, Mapping[str, str], float, float]
"""A series, and its value at the first and at the last scrape."""

_SLOW = {"method": "PatternService.RecallPatterns", "code": "OK"}


def bucket(name: str, labels: Mapping[str, str], bound: str, count: float) -> Change:
    return f"{name}_bucket", {**labels, "le": bound}, 0, count


QUICK: list[Change] = [
    bucket("lot_call_duration_seconds", _SLOW, bound, 1000) for bound in ("0.005", "+Inf")
]
HEALTHY: list[Change] = [
    ("lot_housekeeping_runs_total", {"task": "sweep"}, 0, 3),
    ("lot_event_loop_delay_seconds", {}, 0, 0.001),
    ("lot_certificate_expiry_timestamp_seconds", {}, 90 * 86400, 90 * 86400),
    ("lot_auth_failures_total", {"cause": "wrong"}, 0, 3),
    ("lot_reloads_total", {"what": "keys", "result": "ok"}, 0, 3),
    ("lot_store_free_bytes", {}, 50e9, 50e9),
    *QUICK,
]
"""What depends on the machine or takes half an hour, as it is on a server that is well."""

ILL: Mapping[str, list[Change]] = {
    "LotNotServing": [("lot_serving", {}, 0, 0)],
    "LotErrorRate": [
        ("lot_calls_total", {**_SLOW, "code": "UNAVAILABLE", "reason": "STORE_UNAVAILABLE"}, 0, 900)
    ],
    "LotInternalErrors": [
        ("lot_calls_total", {**_SLOW, "code": "INTERNAL", "reason": "INTERNAL"}, 0, 1)
    ],
    "LotSlow": [
        bucket("lot_call_duration_seconds", _SLOW, bound, count)
        for bound, count in (("0.005", 0), ("1.0", 0), ("2.5", 1000), ("+Inf", 1000))
    ],
    "LotOverloaded": [
        (
            "lot_calls_total",
            {**_SLOW, "code": "RESOURCE_EXHAUSTED", "reason": "OVERLOADED"},
            0,
            1,
        )
    ],
    "LotStoreErrors": [
        ("lot_store_errors_total", {"operation": "put", "reason": "STORAGE_FULL"}, 0, 1)
    ],
    "LotStoreFull": [("lot_store_writable", {}, 0, 0)],
    "LotDiskLow": [
        ("lot_store_free_bytes", {}, 1e9, 1e9),
        ("lot_store_used_bytes", {}, 99e9, 99e9),
    ],
    "LotEmbeddingQueue": [
        ("lot_embedding_queue_length", {}, 40, 40),
        *(
            bucket("lot_embedding_wait_seconds", {}, bound, count)
            for bound, count in (("1.0", 0), ("2.5", 1000), ("+Inf", 1000))
        ),
    ],
    "LotEmbeddingErrors": [("lot_embedding_errors_total", {}, 0, 1)],
    "LotAuditLost": [("lot_audit_records_lost_total", {}, 0, 1)],
    "LotCertificateExpires": [
        ("lot_certificate_expiry_timestamp_seconds", {}, 5 * 86400, 5 * 86400)
    ],
    "LotReloadFailed": [("lot_reloads_total", {"what": "keys", "result": "failed"}, 0, 1)],
    "LotAuthFailures": [("lot_auth_failures_total", {"cause": "wrong"}, 0, 900)],
    "LotFeedLag": [("lot_change_feed_lag_seconds", {}, 60, 60)],
    "LotHousekeepingFails": [("lot_housekeeping_failures_total", {"task": "sweep"}, 0, 1)],
    "LotHousekeepingStopped": [("lot_housekeeping_runs_total", {"task": "sweep"}, 7, 7)],
    "LotEventLoopBusy": [("lot_event_loop_delay_seconds", {}, 2, 2)],
    "LotSpansLost": [("lot_spans_lost_total", {}, 0, 1)],
}


def changed(samples: Samples, changes: list[Change]) -> Samples:
    """The scrapes with other values of some series, and without the rest of a changed histogram."""
    made = copy.deepcopy(samples)
    for name in {name for name, *_ in changes if name.endswith("_bucket")}:
        for key in [key for key in made.series if key[0] == name]:
            del made.series[key]
    for name, labels, first, last in changes:
        key = name, frozenset({**labels, **TARGET}.items())
        made.series[key] = [(STEP, first), (2 * STEP, (first + last) / 2), (3 * STEP, last)]
    return made


@pytest.mark.parametrize("alert", alert_queries(), ids=str)
def test_an_alert_is_silent_on_a_server_that_is_well(scraped: Scraped, alert: Query) -> None:
    assert evaluate(changed(scraped.samples, HEALTHY), alert.text, scraped.last) == {}


@pytest.mark.parametrize("alert", alert_queries(), ids=str)
def test_an_alert_fires_on_a_server_that_is_not(scraped: Scraped, alert: Query) -> None:
    samples = changed(scraped.samples, HEALTHY)
    if alert.name == "LotDown":
        gone = [key for key in samples.series if key[0] == "lot_build_info"]
        for key in gone:
            del samples.series[key]
        assert gone
    else:
        samples = changed(samples, ILL[alert.name])
    assert evaluate(samples, alert.text, scraped.last)
