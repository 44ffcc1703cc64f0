"""How well a thing worked, as tables and lists tell it."""

from __future__ import annotations

from rich.text import Text

from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import outcome_pb2 as pb

_GOOD, _FAIR = 0.8, 0.5
"""Success rates from which on they are green, or yellow; below that they are red."""

_UNUSED = "not used yet"


def rate_text(outcomes: pb.Outcomes) -> Text:
    """The success rate in the colour of how good it is; dim while it is but what was said first."""
    return Text(f"{outcomes.success_rate:.2f}", style=_style(outcomes))


def usage_text(outcomes: pb.Outcomes) -> Text:
    """How often it was used, with a sentence for never."""
    if not outcomes.usage_count:
        return Text(_UNUSED, style="dim")
    return Text(f"{outcomes.usage_count:,}")


def outcomes_text(outcomes: pb.Outcomes) -> str:
    """All that is known of how well it worked, in a line."""
    if not outcomes.usage_count:
        return f"{_UNUSED}; saved with rate {outcomes.success_rate:.2f}"
    counts = [
        f"{outcomes.success_count:,} of {outcomes.usage_count:,} worked",
        f"{outcomes.partial_count:,} in part" if outcomes.partial_count else "",
        f"{outcomes.failure_count:,} failed" if outcomes.failure_count else "",
    ]
    told = [
        ", ".join(filter(None, counts)),
        f"rate {outcomes.success_rate:.2f}",
        f"reliability {outcomes.reliability:.2f}",
    ]
    if outcomes.HasField("average_duration"):
        told.append(f"{span(outcomes.average_duration.ToTimedelta().total_seconds())} on average")
    return "; ".join(told)


def _style(outcomes: pb.Outcomes) -> str:
    if not outcomes.usage_count:
        return "dim"
    if outcomes.success_rate >= _GOOD:
        return "green"
    return "yellow" if outcomes.success_rate >= _FAIR else "red"
