"""The dashboard and the alerts read only metrics and labels that there are."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from lot_grpc.telemetry.instruments import Counter, Histogram
from lot_grpc.telemetry.metrics import ALL
from tests.telemetry.queries import (
    ALERTS,
    Query,
    alert_queries,
    alert_rules,
    dashboard,
    grouped,
    panel_queries,
    selectors,
)

TARGET = {"job", "instance"}
"""Labels that Prometheus adds."""
PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def labels_by_name() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in PROCESS}
    for metric in ALL:
        labels = set(metric.labels)
        if isinstance(metric, Counter):
            found[f"{metric.name}_total"] = labels
        elif isinstance(metric, Histogram):
            found[f"{metric.name}_bucket"] = labels | {"le"}
            found[f"{metric.name}_sum"] = found[f"{metric.name}_count"] = labels
        else:
            found[metric.name] = labels
    return found


@pytest.mark.parametrize("query", [*panel_queries(), *alert_queries()], ids=str)
def test_a_query_names_metrics_and_labels_that_there_are(query: Query) -> None:
    known = labels_by_name()
    read = list(selectors(query.text))
    assert read
    labels = set(TARGET)
    for name, selected in read:
        assert selected <= known[name] | TARGET, name
        labels |= known[name]
    assert grouped(query.text) <= labels
    shown = set(re.findall(r"{{(\w+)}}", query.legend))
    assert shown <= grouped(query.text)


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {name for query in panel_queries() for name, _ in selectors(query.text)}
    for metric in ALL:
        assert any(name.startswith(metric.name) for name in shown), metric.name


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_says_what_happened_and_how_bad_it_is() -> None:
    names = [rule["alert"] for rule in alert_rules()]
    assert len(set(names)) == len(names)
    for rule in alert_rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"].endswith(".")
        labels = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"]))
        assert labels <= grouped(rule["expr"])


def test_prometheus_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: the rules were only parsed and evaluated")
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], check=False)
    assert done.returncode == 0
