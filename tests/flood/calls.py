"""The calls of both principals."""

from __future__ import annotations

from typing import Any

import grpc.aio

from lot_grpc.pb.lot.v1 import pattern_pb2, pattern_service_pb2, pattern_service_pb2_grpc

METADATA = {name: (("authorization", f"Bearer {name}"),) for name in ("flood", "steady")}
DEADLINE = 60.0


def stub(channel: grpc.aio.Channel) -> Any:
    """The service that is called."""
    return pattern_service_pb2_grpc.PatternServiceStub(channel)


async def recall(patterns: Any, text: str, metadata: Any) -> None:
    """A recall of another text each time, so that it is embedded."""
    request = pattern_service_pb2.RecallPatternsRequest(query=f"how to handle {text}", limit=5)
    await patterns.RecallPatterns(request, metadata=metadata, timeout=DEADLINE)


async def save(patterns: Any, text: str, metadata: Any) -> None:
    """A save of another pattern each time."""
    pattern = pattern_pb2.Pattern(task=f"Handle {text}", approach="step by step, then check it")
    request = pattern_service_pb2.SavePatternRequest(pattern=pattern)
    await patterns.SavePattern(request, metadata=metadata, timeout=DEADLINE)
