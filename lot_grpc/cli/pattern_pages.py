"""What ``lot-grpc patterns`` prints for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text

from lot_grpc.cli.code_blocks import print_code
from lot_grpc.cli.hit_tables import name_of
from lot_grpc.cli.pattern_texts import outcomes_text, rate_text, usage_text
from lot_grpc.cli.tables import Column, print_fields, print_table
from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import CODE_KINDS, COMPLEXITIES, OUTCOMES, PATTERN_KINDS, PATTERN_TYPES
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb

_STYLES: dict[int, str] = {
    outcome_pb2.OUTCOME_SUCCESS: "green",
    outcome_pb2.OUTCOME_PARTIAL: "yellow",
    outcome_pb2.OUTCOME_FAILURE: "red",
}


def _time(time: Timestamp) -> str:
    return local_time(time) if time.ByteSize() else ""


# What agents wrote comes last: letters that run from right to left would move what stands behind.
_PATTERNS = (
    Column[pb.Pattern]("id", lambda one: clean(one.pattern_id), folded=True),
    Column[pb.Pattern]("kind", lambda one: PATTERN_KINDS.word(one.kind), 2),
    Column[pb.Pattern]("rate", lambda one: rate_text(one.outcomes), numeric=True),
    Column[pb.Pattern]("used", lambda one: usage_text(one.outcomes), numeric=True),
    Column[pb.Pattern]("created", lambda one: _time(one.create_time), 1),
    Column[pb.Pattern]("language", lambda one: one_line(one.language), 3),
    Column[pb.Pattern]("task", name_of),
)


def print_patterns(console: Console, patterns: Sequence[pb.Pattern]) -> None:
    """A row for each, in the columns for which there is room."""
    print_table(console, _PATTERNS, patterns, "task")


def print_pattern(console: Console, pattern: pb.Pattern) -> None:
    """Every field that says something, then its code."""
    print_fields(console, _fields(pattern))
    if pattern.code:
        console.print()
        print_code(console, pattern.code, pattern.language)


def _fields(pattern: pb.Pattern) -> Iterable[tuple[str, str | Text]]:
    yield "id", pattern.pattern_id
    yield "title", pattern.title
    yield "kind", _kind(pattern)
    yield "teaches", PATTERN_TYPES.word(pattern.pattern_type) if pattern.pattern_type else ""
    yield "outcomes", outcomes_text(pattern.outcomes)
    yield "last used", _time(pattern.outcomes.last_used_time)
    yield "confidence", _confidence(pattern)
    yield "task", pattern.task
    yield "when", pattern.context
    yield "actions", "\n".join(map(_action, range(1, len(pattern.actions) + 1), pattern.actions))
    told = {
        "language": pattern.language,
        "category": pattern.category,
        "task type": pattern.task_type,
        "for tasks like": pattern.task_type_pattern,
        "complexity": COMPLEXITIES.word(pattern.complexity) if pattern.complexity else "",
        "approach": pattern.approach,
        "goes with success": "\n".join(pattern.success_indicators),
        "goes with failure": "\n".join(pattern.failure_indicators),
        "have at hand": pattern.recommended_context,
        "success factors": "\n".join(pattern.success_factors),
        "tools": ", ".join(pattern.tools),
        "tags": ", ".join(pattern.tags),
        "labels": "\n".join(f"{key}={value}" for key, value in sorted(pattern.labels.items())),
        "metadata": data_text(pattern.metadata) if pattern.metadata.fields else "",
        "pinned": "yes" if pattern.pinned else "",
        "source episodes": "\n".join(pattern.source_episode_ids),
        "source patterns": "\n".join(pattern.source_pattern_ids),
        "group": pattern.parent_pattern_id,
        "supersedes": pattern.supersedes,
        "superseded by": pattern.superseded_by,
        "created": _time(pattern.create_time),
        "updated": _time(pattern.update_time),
        "expires": _time(pattern.expire_time),
    }
    yield from told.items()


def _kind(pattern: pb.Pattern) -> str:
    kind = PATTERN_KINDS.word(pattern.kind)
    return f"{kind}: {CODE_KINDS.word(pattern.code_kind)}" if pattern.code_kind else kind


def _confidence(pattern: pb.Pattern) -> str:
    if not pattern.HasField("confidence"):
        return ""
    told = pattern.feedback
    if not told.feedback_count:
        return f"{pattern.confidence:.2f}"
    return (
        f"{pattern.confidence:.2f} after {told.feedback_count:,} feedback: "
        f"{told.helpful_count:,} helpful, {told.unhelpful_count:,} not"
    )


def _action(number: int, action: pb.Action) -> str:
    parts = [f"{number}. {action.tool}"]
    if action.args.fields:
        parts.append(data_text(action.args))
    if action.note:
        parts.append(f"({action.note})")
    return " ".join(parts)


_OUTCOMES = (
    Column[service_pb.OutcomeEntry]("when", lambda one: _time(one.create_time)),
    Column[service_pb.OutcomeEntry]("outcome", lambda one: _outcome(one)),
    Column[service_pb.OutcomeEntry]("took", lambda one: _took(one), 3, numeric=True),
    Column[service_pb.OutcomeEntry]("id", lambda one: clean(one.outcome_id), 1, folded=True),
    Column[service_pb.OutcomeEntry]("of what", lambda one: one_line(_about(one))),
)


def print_outcomes(console: Console, outcomes: Sequence[service_pb.OutcomeEntry]) -> None:
    """A row for each, below the pattern that they are about."""
    if outcomes:
        print_table(console, _OUTCOMES, outcomes, "of what")


def _outcome(entry: service_pb.OutcomeEntry) -> Text:
    word = OUTCOMES.word(entry.outcome) if entry.outcome else "nothing"
    if entry.corrected_by:
        return Text.assemble((word, "strike"), " corrected")
    if entry.corrects:
        return Text(f"{word} instead", style=_STYLES.get(entry.outcome, ""))
    return Text(word, style=_STYLES.get(entry.outcome, ""))


def _took(entry: service_pb.OutcomeEntry) -> str:
    if not entry.HasField("duration"):
        return ""
    return span(entry.duration.ToTimedelta().total_seconds())


def _about(entry: service_pb.OutcomeEntry) -> str:
    told = "saved again" if entry.repeat else entry.query
    corrects = f"corrects {entry.corrects}" if entry.corrects else ""
    return "; ".join(filter(None, (corrects, told, entry.note)))
