"""Counts in readable form."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """A count and its word: ``1 query``, ``2 queries``, ``1,000 patterns``."""
    if not many:
        many = f"{one[:-1]}ies" if one.endswith("y") and one[-2] not in "aeo" else f"{one}s"
    return f"{count:,} {one if count == 1 else many}"


def share_text(count: int, total: int) -> str:
    """A count and its share: ``3 (60.0%)``; without a share if the total is 0."""
    return f"{count:,} ({count / total:.1%})" if total else f"{count:,}"
