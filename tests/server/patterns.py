"""Patterns on the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2, pattern_service_pb2
from tests.server.service import Lot

GIVEN_BY_SERVER = (
    "pattern_id", "outcomes", "namespace", "etag", "create_time", "update_time", "feedback",
    "superseded_by", "review",
)  # fmt: skip


PB: Any = pattern_service_pb2


P: Any = pattern_pb2


SUCCESS, FAILURE, PARTIAL = (
    outcome_pb2.OUTCOME_SUCCESS,
    outcome_pb2.OUTCOME_FAILURE,
    outcome_pb2.OUTCOME_PARTIAL,
)


LATER = datetime(2100, 1, 1, tzinfo=UTC)


def whole_pattern() -> Any:
    """A pattern with every field that a caller can set."""
    return P.Pattern(
        kind=P.PATTERN_KIND_CODE,
        code_kind=P.CODE_KIND_ERROR_HANDLER,
        pattern_type=P.PATTERN_TYPE_OPTIMIZATION,
        title="Retry with jitter",
        task="call a flaky service",
        context="behind a load balancer",
        actions=[{"tool": "http", "args": {"tries": 3, "codes": [502, None, "x"]}, "note": "n"}],
        code="async def call(): ...",
        language="Python",
        category="integration",
        task_type="backend",
        task_type_pattern="call .* service",
        complexity=outcome_pb2.COMPLEXITY_HIGH,
        approach="incremental",
        success_indicators=["200"],
        failure_indicators=["timeout"],
        recommended_context="idempotent calls",
        success_factors=["jitter"],
        tools=["http", "clock"],
        tags=["net", "naïve 漢字"],
        labels={"team.name/x": "core=1", "empty": ""},
        metadata={"a.b": {"deep": [1, 2.5, True, None, {"": "x"}]}, "": "empty key"},
        pinned=True,
        confidence=0.0,
        source_episode_ids=["e-1"],
        source_pattern_ids=["p-1", "p-1"],
        parent_pattern_id="p-0",
        supersedes="p-9",
        expire_time=LATER,
        origin={"kind": "ORIGIN_KIND_TOOL", "name": "pytest"},
    )


async def saved(lot: Lot, task: str = "sort a list", **fields: Any) -> Any:
    """A pattern that was saved; ``pattern_id`` and the like go beside it."""
    beside = {
        name: fields.pop(name)
        for name in ("pattern_id", "request_id", "dedupe", "initial_success_rate", "namespace")
        if name in fields
    }
    answer = await lot.patterns.SavePattern(pattern={"task": task, **fields}, **beside)
    return answer.pattern


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.patterns.ListPatterns(page_size=1000, **requested)
    return [pattern.pattern_id for pattern in answer.patterns]


async def recalled(lot: Lot, query: str, **requested: Any) -> list[str]:
    answer = await lot.patterns.RecallPatterns(query=query, limit=100, **requested)
    return [hit.pattern.pattern_id for hit in answer.hits]
