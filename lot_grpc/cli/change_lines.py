"""How one change is shown."""

from __future__ import annotations

from rich.console import Console

from lot_grpc.cli.screen import print_line
from lot_grpc.cli.texts import data_text, one_line
from lot_grpc.cli.times import local_time
from lot_grpc.cli.words import CHANGE_TYPES, RESOURCE_KINDS, STATUSES
from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import change_pb2 as pb

_STYLES = {
    pb.CHANGE_TYPE_STORED: "green",
    pb.CHANGE_TYPE_UPDATED: "yellow",
    pb.CHANGE_TYPE_DELETED: "red",
    pb.CHANGE_TYPE_CLEARED: "bold red",
    pb.CHANGE_TYPE_PATTERN_LEARNED: "magenta",
    pb.CHANGE_TYPE_PATTERN_MATCHED: "cyan",
    pb.CHANGE_TYPE_CONTEXT_SUGGESTED: "cyan",
}


def print_change(console: Console, change: pb.ChangeEvent) -> None:
    """When, what, of which kind, its id, and what it is about, cut to the width."""
    style = _STYLES.get(change.type, "")
    summary = one_line(summary_of(change), 4 * console.width)
    if change.resource_kind:
        resource_kind = RESOURCE_KINDS.word(change.resource_kind)
    else:  # what was cleared is all of them; a context is of none
        resource_kind = "all" if change.type == pb.CHANGE_TYPE_CLEARED else ""
    print_line(
        console,
        (local_time(change.time, "%H:%M:%S"), "dim"),
        (f"  {CHANGE_TYPES.word(change.type)}", style),
        (f"  {resource_kind}" if resource_kind else "", ""),
        (f"  {one_line(change.id)}" if change.id else "", "bold"),
        (f"  {summary}" if summary else "", ""),
    )


def summary_of(change: pb.ChangeEvent) -> str:
    """What the payload is about; empty without one. Not cleaned."""
    match change.WhichOneof("payload"):
        case "memory":
            return visible(change.memory.title) or change.memory.content
        case "pattern":
            pattern = change.pattern
            return visible(pattern.title) or pattern.task
        case "episode":
            return f"{STATUSES.word(change.episode.status)}: {change.episode.task}"
        case "error_solution":
            solution = change.error_solution
            error = ": ".join(filter(None, (solution.error_type, solution.error_message)))
            return f"{error} → {solution.resolution}" if solution.resolution else error
        case "preference":
            return data_text(change.preference.value)
        case "session":
            return f"up to message {change.session.last_sequence}"
        case "learning_event":
            event = change.learning_event
            return ": ".join(filter(None, (event.event_type, visible(event.text) or event.task)))
        case "decision":
            return f"{change.decision.chosen_option}: {change.decision.context}"
        case "pattern_match":
            return f"{change.pattern_match.similarity:.2f} for {change.pattern_match.query}"
        case "context_suggestion":
            return change.context_suggestion.task
    return ""
