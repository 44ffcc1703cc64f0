"""The origin and the review of a record, as shown in tables and lists."""

from __future__ import annotations

from rich.text import Text

from lot_grpc.cli.fields import field_text
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import ORIGIN_KINDS, REVIEW_STATES
from lot_grpc.pb.lot.v1 import origin_pb2

_STYLES: dict[int, str] = {
    origin_pb2.REVIEW_STATE_PENDING: "yellow",
    origin_pb2.REVIEW_STATE_REJECTED: "red",
}


def origin_text(origin: origin_pb2.Origin) -> str:
    """Who wrote it, such as ``person alice``; empty for an agent without a name."""
    if origin.kind in (0, origin_pb2.ORIGIN_KIND_AGENT) and not origin.name:
        return ""
    kind = ORIGIN_KINDS.word(origin.kind or origin_pb2.ORIGIN_KIND_AGENT)
    return one_line(f"{kind} {origin.name}").strip()


def review_text(review: origin_pb2.Review) -> str:
    """The state, when and by whom it was set, and the note; empty if no review is needed."""
    if not review.state:
        return ""
    by = f"by {review.principal}" if review.principal else ""
    parts = (REVIEW_STATES.word(review.state), field_text(review, "review_time"), by)
    reviewed = " ".join(filter(None, parts))
    return one_line(": ".join(filter(None, (reviewed, review.note))))


def held_back_text(review: origin_pb2.Review) -> Text:
    """A mark before the name of a record that is held back."""
    if review.state not in _STYLES:
        return Text()
    return Text(f"{REVIEW_STATES.word(review.state)}: ", _STYLES[review.state])
