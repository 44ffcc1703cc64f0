"""Patterns from source code.

The id of a pattern follows from its code, its name, its language and its context, so the same code
again finds what is there and changes nothing, and a call that died is finished by the next one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.code_patterns import piece_content, piece_pattern_id, worth_a_pattern
from lot_grpc.domain.code_shapes import ParsedCode
from lot_grpc.domain.errors import LimitExceededError, LotError, PatternIdInUseError, invalid
from lot_grpc.domain.json_values import as_doubles, number_text
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent, different_fields
from lot_grpc.parsing.interface import LANGUAGES, MAX_TOTAL_BYTES
from lot_grpc.parsing.sandbox import SANDBOX
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft, Saved
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_AT_ONCE = 50
"""Patterns that are saved at once: what is embedded together is written together."""

_UNWRITTEN = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
"""Characters that do not occur in source code."""

_MOST_UNWRITTEN = 0.01
"""A text with this share of them or more is not source code."""


@dataclass(frozen=True, slots=True)
class CodeDraft:
    """Code to extract patterns from. ``success_metrics`` are stored with each."""

    code: str
    language: str
    context: str = ""
    success_metrics: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Extracted:
    """The patterns in the order of the code, as they now stand.

    ``created_count`` of them are new (in a dry run: would be). ``unparsed`` tells what is not among
    them, and why. ``unchanged_fields`` are fields that a pattern that was there keeps, since it was
    given otherwise. The flags: the model did not read all of a text, of a code.
    """

    patterns: tuple[Pattern, ...]
    unparsed: tuple[str, ...]
    created_count: int
    unchanged_fields: tuple[str, ...] = ()
    text_truncated: bool = False
    code_truncated: bool = False


class CodeExtraction:
    """Extracts patterns from code."""

    def __init__(
        self, pattern_writer: PatternWriter, patterns: Patterns, time_source: TimeSource
    ) -> None:
        self._pattern_writer = pattern_writer
        self._patterns = patterns
        self._time = time_source

    async def extract(self, namespace: str, draft: CodeDraft) -> Extracted:
        """Find the pieces and store each as a pattern.

        Raises RequestInvalidError and LimitExceededError, and then stores nothing.
        """
        language = _language(draft.language)
        rate = _success_rate(draft.success_metrics)
        _check_text(draft.code)
        parsed = await SANDBOX.parse(draft.code, language)
        found_contents = await _contents(parsed, language, draft)
        there = await self._there(namespace, tuple(found_contents))
        new = [
            PatternDraft(content, pattern_id, rate, dedupe=Dedupe.NONE)
            for pattern_id, content in found_contents.items()
            if pattern_id not in there
        ]
        if draft.dry_run:
            made = {one.pattern_id: self._unsaved(namespace, one) for one in new}
        else:
            made = await self._save(namespace, new)
        time_slice = TimeSlice()
        unchanged_fields: dict[str, None] = {}
        for pattern_id, pattern in there.items():
            unchanged_fields |= dict.fromkeys(
                _given_otherwise(pattern.content, found_contents[pattern_id])
            )
            await time_slice.give_way()
        stored = there | {pattern_id: saved.pattern for pattern_id, saved in made.items()}
        return Extracted(
            tuple(stored[pattern_id] for pattern_id in found_contents),
            parsed.unparsed,
            sum(saved.created for saved in made.values()),
            tuple(unchanged_fields),
            any(saved.text_truncated for saved in made.values()),
            any(saved.code_truncated for saved in made.values()),
        )

    async def _there(self, namespace: str, ids: tuple[str, ...]) -> dict[str, Pattern]:
        found: dict[str, Pattern] = {}
        for start in range(0, len(ids), _AT_ONCE):
            some = await self._patterns.get_many(namespace, ids[start : start + _AT_ONCE])
            found |= {pattern.pattern_id: pattern for pattern in some}
            await asyncio.sleep(0)
        return found

    async def _save(self, namespace: str, drafts: Sequence[PatternDraft]) -> dict[str, Saved]:
        saved: dict[str, Saved] = {}
        for start in range(0, len(drafts), _AT_ONCE):
            some = drafts[start : start + _AT_ONCE]
            results = await self._pattern_writer.save_many(namespace, some)
            for one, result in zip(some, results, strict=True):
                saved[one.pattern_id] = await self._saved(namespace, one, result)
        return saved

    async def _saved(self, namespace: str, draft: PatternDraft, result: Saved | LotError) -> Saved:
        """The result for one pattern. Another call may have stored or edited it meanwhile."""
        if isinstance(result, PatternIdInUseError):
            return Saved(await self._patterns.get(namespace, draft.pattern_id), created=False)
        if isinstance(result, LotError):
            raise result
        return result

    def _unsaved(self, namespace: str, draft: PatternDraft) -> Saved:
        """What a save would return."""
        now = self._time.now()
        outcomes = OutcomeStats(success_rate=draft.initial_success_rate)
        pattern = Pattern(namespace, draft.pattern_id, draft.content, outcomes, 1, now, now)
        return Saved(pattern, created=True)


async def _contents(
    parsed: ParsedCode, language: str, draft: CodeDraft
) -> dict[str, PatternContent]:
    """By id, in the order of the code; a piece that is there twice is one pattern."""
    size = len(draft.context.encode()) + _size(draft.success_metrics)
    total = sum(len(piece.code) for piece in parsed.pieces) + size * len(parsed.pieces)
    if total > MAX_TOTAL_BYTES:
        raise LimitExceededError(
            f"{len(parsed.pieces):,} pieces with their context and success_metrics have {total:,} "
            f"bytes in total; at most {MAX_TOTAL_BYTES:,} are allowed: send the code in smaller "
            "parts, or with less context",
            limit=MAX_TOTAL_BYTES,
            given=total,
        )
    time_slice = TimeSlice()
    contents: dict[str, PatternContent] = {}
    for piece in worth_a_pattern(parsed.pieces):
        content = piece_content(piece, language, draft.context, draft.success_metrics)
        contents.setdefault(piece_pattern_id(content), content)
        await time_slice.give_way()
    return contents


def _size(value: Any) -> int:
    """About how many bytes a JSON value takes."""
    if isinstance(value, Mapping):
        return sum(len(key) + _size(one) + 4 for key, one in value.items())
    if isinstance(value, list):
        return sum(_size(one) + 2 for one in value)
    return len(value.encode()) if isinstance(value, str) else 9


def _language(given: str) -> str:
    language = language_name(given)
    if language not in LANGUAGES:
        raise invalid(
            "language",
            "language.grammar",
            f"language {given!r} is not supported; supported are {', '.join(LANGUAGES)} (and their "
            "usual aliases, including tsx and jsx)",
        )
    return language


def _check_text(code: str) -> None:
    unwritten = len(_UNWRITTEN.findall(code))
    if unwritten > _MOST_UNWRITTEN * len(code):
        raise invalid(
            "code",
            "code.text",
            f"is binary: {unwritten:,} of its {len(code):,} characters are control characters; "
            "send source text",
        )


def _success_rate(metrics: Mapping[str, Any]) -> float:
    """The rate to start from: ``success_rate`` of the metrics if it is a number, else 1."""
    rate = metrics.get("success_rate")
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        return 1.0
    if not 0 <= rate <= 1:
        raise invalid(
            "success_metrics.success_rate",
            "success_rate.range",
            "must be in [0, 1], since it is the initial success rate of the patterns, is "
            f"{number_text(rate)}",
        )
    return float(rate)


def _given_otherwise(stored: PatternContent, given: PatternContent) -> list[str]:
    """What the caller gave and the stored pattern has otherwise: the success metrics."""
    unchanged_fields = different_fields(stored, given)
    metrics = given.metadata.get("success_metrics", {})
    same = as_doubles(stored.metadata.get("success_metrics", {})) == as_doubles(metrics)
    return (
        ["metadata.success_metrics"]
        if "metadata" in unchanged_fields and metrics and not same
        else []
    )
