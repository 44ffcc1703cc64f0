"""Expiry as given by callers: a time, or a time to live."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.pattern import PatternContent

Content = TypeVar("Content", PatternContent, MemoryContent, ErrorSolutionContent)


def check_expiry(resource_kind: str, expire_time: int | None, now: int) -> None:
    """Refuse a time in the past: the record would be absent at once."""
    if expire_time is not None and expire_time <= now:
        raise invalid(
            f"{resource_kind}.expire_time",
            "expire_time.future",
            "expire_time must be in the future",
        )


def with_ttl(content: Content, ttl: int | None, now: int) -> Content:
    """The content with its expiry computed from a time to live in microseconds."""
    return content if ttl is None else replace(content, expire_time=now + ttl)
