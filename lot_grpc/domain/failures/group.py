"""What the failures of a group have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.extraction.digest import ErrorSeen
from lot_grpc.domain.failures.failure import Failure
from lot_grpc.domain.failures.share_trend import ShareTrend, Timeline

MOST_EXAMPLES: Final = 5
MOST_SIGNATURES: Final = 10
MOST_TOOLS: Final = 10
LONGEST_MESSAGE: Final = 1_024
"""Bytes of the example's message."""


@dataclass(frozen=True, slots=True)
class GoodRun:
    """A successful episode of a similar task."""

    episode_id: str
    approach: str
    similarity: float


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """A group of failures. Field by field as in ``lot.v1.FailureGroup``."""

    signature: str
    count: int
    share: float
    trend: ShareTrend
    example_episode_ids: tuple[str, ...]
    example_error: ErrorSeen
    signatures: tuple[str, ...]
    signature_count: int
    tools: tuple[str, ...]
    failed_after_event_type: str
    failed_after_tool: str
    failed_after_share: float
    first_time: int
    last_time: int
    last_good: GoodRun | None = None


@dataclass(frozen=True, slots=True)
class FailureAnalysis:
    """Groups, the largest first, and the numbers of failures and signatures examined."""

    groups: tuple[FailureGroup, ...] = ()
    group_count: int = 0
    failed_count: int = 0
    analyzed_count: int = 0
    signature_count: int = 0
    compared_signature_count: int = 0


def group_of(failures: Sequence[Failure], timeline: Timeline, total: int) -> FailureGroup:
    """A group; ``total`` counts the failures of all groups."""
    failures = sorted(failures, key=lambda one: (-one.end_time, one.episode_id))
    signatures = Counter(one.signature for one in failures)
    ranked = _ranked(signatures)
    typical = next(one for one in failures if one.signature == ranked[0])
    afters = Counter(one.after for one in failures if one.after is not None)
    after = min(afters, key=lambda place: (-afters[place], place), default=("", ""))
    tools = Counter(tool for one in failures for tool in one.tools)
    return FailureGroup(
        signature=ranked[0],
        count=len(failures),
        share=len(failures) / total,
        trend=timeline.trend([one.end_time for one in failures]),
        example_episode_ids=tuple(one.episode_id for one in failures[:MOST_EXAMPLES]),
        example_error=ErrorSeen(typical.error.type, _cut(typical.error.message)),
        signatures=ranked[:MOST_SIGNATURES] if ranked[0] else (),
        signature_count=len(signatures) if ranked[0] else 0,
        tools=_ranked(tools)[:MOST_TOOLS],
        failed_after_event_type=after[0],
        failed_after_tool=after[1],
        failed_after_share=afters[after] / len(failures),
        first_time=min(one.end_time for one in failures),
        last_time=max(one.end_time for one in failures),
    )


def in_order(groups: Sequence[FailureGroup]) -> list[FailureGroup]:
    """The largest first, of equally large ones the last to happen, then by signature."""
    return sorted(groups, key=lambda one: (-one.count, -one.last_time, one.signature))


def _ranked(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def _cut(text: str) -> str:
    return text.encode()[:LONGEST_MESSAGE].decode(errors="ignore")
