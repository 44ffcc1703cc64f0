"""Patterns and hits to show, for the commands that tell of patterns."""

from __future__ import annotations

from datetime import UTC, datetime

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COLOURS = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
WIDE = {
    "cjk": "漢字を直す",
    "emoji": "🚀 deploy 👩🏽 it",
    "combining": "e\u0301tude\u0323 na\u0303o",
    "arabic": "إصلاح الخطأ في الخادم",
    "hebrew": "תיקון השגיאה",
    "thai": "แก้ไขข้อผิดพลาด",
}


def outcomes(usage: int = 0, successes: int = 0, rate: float = 1.0) -> outcome_pb2.OutcomeStats:
    return outcome_pb2.OutcomeStats(
        usage_count=usage,
        success_count=successes,
        failure_count=usage - successes,
        success_rate=rate,
        reliability=0.25 if usage else 0,
    )


def pattern(number: int, used: outcome_pb2.OutcomeStats | None = None, **fields) -> pb.Pattern:
    made = pb.Pattern(
        pattern_id=f"p-{number}",
        outcomes=used or outcomes(),
        **{
            "task": "t",
            "kind": pb.PATTERN_KIND_TASK,
            "pattern_type": pb.PATTERN_TYPE_SUCCESS,
            **fields,
        },
    )
    made.create_time.FromDatetime(START)
    return made


def hit(one: pb.Pattern, similarity: float = 0.5, **fields) -> service_pb.PatternHit:
    return service_pb.PatternHit(pattern=one, similarity=similarity, score=similarity, **fields)


def find(fake, *hits: service_pb.PatternHit, **fields) -> None:
    fake.patterns.answer = service_pb.RecallPatternsResponse(hits=hits, **fields)


def table_of(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.strip(" ─")]
