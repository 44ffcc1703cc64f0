"""The queries of the dashboard and of the alert rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml  # type: ignore[import-untyped]

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "lot-grpc.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"

_VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$job": ".*", "$instance": ".*"}


@dataclass(frozen=True)
class Query:
    """A query with the name of its panel or alert."""

    name: str
    text: str
    legend: str = ""

    def __str__(self) -> str:
        return self.name


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text())  # type: ignore[no-any-return]


def panel_queries() -> list[Query]:
    """Those of the dashboard, with Grafana's variables filled in."""
    found = []
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for variable, value in _VARIABLES.items():
                text = text.replace(variable, value)
            found.append(Query(f"{panel['title']} {target['refId']}", text, target["legendFormat"]))
    return found


def alert_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alert_queries() -> list[Query]:
    return [Query(rule["alert"], rule["expr"]) for rule in alert_rules()]


def selectors(text: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics that a query reads, each with the labels that it selects by."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        elif isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)
        for name in ("expr", "lhs", "rhs", "param"):
            if (child := getattr(node, name, None)) is not None:
                visit(child)
        for child in getattr(node, "args", ()):
            visit(child)

    visit(promql_parser.parse(text))
    for node in found:
        yield node.name, {matcher.name for matcher in node.matchers.matchers}


def grouped(text: str) -> set[str]:
    """The labels that a query groups or matches by."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        modifier = getattr(node, "modifier", None)
        found.update(getattr(modifier, "labels", None) or ())
        found.update(getattr(getattr(modifier, "matching", None), "labels", None) or ())
        for name in ("expr", "lhs", "rhs", "param"):
            if (child := getattr(node, name, None)) is not None:
                visit(child)
        for child in getattr(node, "args", ()):
            visit(child)

    visit(promql_parser.parse(text))
    return found
