"""The name and the outcomes of a pattern, as shown in tables and lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.text import Text

from lot_grpc.cli.fields import field_text
from lot_grpc.cli.origin_texts import held_back_text
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import PATTERN_TYPES
from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2

LISTED = (
    "pattern_id",
    "kind",
    "pattern_type",
    "title",
    "task",
    "language",
    "outcomes",
    "create_time",
    "review",
)
"""The fields of a pattern that a row of a recall or a list shows."""

OUTCOME_STYLES: Mapping[int, str] = {
    outcome_pb2.OUTCOME_SUCCESS: "green",
    outcome_pb2.OUTCOME_PARTIAL: "yellow",
    outcome_pb2.OUTCOME_FAILURE: "red",
}

_GOOD, _FAIR = 0.8, 0.5
"""Success rates from which they are green or yellow; below, they are red."""

_UNUSED = "not used yet"


def name_of(pattern: pattern_pb2.Pattern) -> Text:
    """Its title or task on one line, after marks: what is held back, what is to be avoided."""
    mark = held_back_text(pattern.review)
    name = one_line(visible(pattern.title) or pattern.task)
    if pattern.pattern_type in (
        pattern_pb2.PATTERN_TYPE_UNSPECIFIED,
        pattern_pb2.PATTERN_TYPE_SUCCESS,
    ):
        return mark + Text(name)
    failure = pattern.pattern_type == pattern_pb2.PATTERN_TYPE_FAILURE
    word = PATTERN_TYPES.word(pattern.pattern_type)
    return mark + Text.assemble((f"{word}: ", "red" if failure else "cyan"), name)


def rate_text(outcomes: outcome_pb2.OutcomeStats) -> Text:
    """The success rate, coloured by how good it is; dim until it is measured."""
    rate = outcomes.success_rate
    style = "green" if rate >= _GOOD else "yellow" if rate >= _FAIR else "red"
    return Text(f"{rate:.2f}", style=style if outcomes.usage_count else "dim")


def usage_text(outcomes: outcome_pb2.OutcomeStats) -> Text:
    """How often it was used."""
    if not outcomes.usage_count:
        return Text(_UNUSED, style="dim")
    return Text(f"{outcomes.usage_count:,}")


def outcomes_text(outcomes: outcome_pb2.OutcomeStats) -> str:
    """All outcomes on one line."""
    if not outcomes.usage_count:
        return f"{_UNUSED}; saved with rate {outcomes.success_rate:.2f}"
    counts = [
        f"{outcomes.success_count:,} of {outcomes.usage_count:,} worked",
        f"{outcomes.partial_count:,} in part" if outcomes.partial_count else "",
        f"{outcomes.failure_count:,} failed" if outcomes.failure_count else "",
    ]
    average = field_text(outcomes, "average_duration")
    parts = [
        ", ".join(filter(None, counts)),
        f"rate {outcomes.success_rate:.2f}",
        f"reliability {outcomes.reliability:.2f}",
        f"{average} on average" if average else "",
    ]
    return "; ".join(filter(None, parts))


def parts_text(parts: Iterable[outcome_pb2.ScorePart]) -> str:
    """`` = 0.812 similarity + 0.1 · 0.5 learned``; empty without parts."""
    terms = [
        f"{part.value:.3f} {one_line(part.name)}"
        if part.weight == 1
        else f"{part.weight:.3g} · {part.value:.3f} {one_line(part.name)}"
        for part in parts
    ]
    return f" = {' + '.join(terms)}" if terms else ""
