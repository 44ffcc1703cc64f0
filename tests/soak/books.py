"""What journals say, folded: each episode of an agent, each request of a writer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.soak.journal import Entry


@dataclass
class Recorded:
    """An episode of a recording agent.

    Attributes:
        count: events it shall have.
        sent: the highest number that was given to the recorder, or was about to be.
        acked: the highest number that was acknowledged.
        kept: the highest number of which the recorder said that it is kept in a file.
        state: `open` until the agent began to end it, `ending` from then on, `ended` once that was
            acknowledged. `left` if the agent gave it up.
    """

    episode: str
    count: int
    sent: int = 0
    acked: int = 0
    kept: int = 0
    state: Literal["open", "ending", "ended", "left"] = "open"


def recorded(entries: Iterable[Entry]) -> dict[str, Recorded]:
    """All episodes of an agent, in the order in which it began them."""
    found: dict[str, Recorded] = {}
    for entry in entries:
        kind = entry["kind"]
        if kind == "begin":
            found[entry["episode"]] = Recorded(entry["episode"], entry["count"])
        elif kind in {"sent", "acked", "kept"}:
            one = found[entry["episode"]]
            setattr(one, kind, max(getattr(one, kind), entry["n"]))
        elif kind in {"ending", "ended", "left"}:
            found[entry["episode"]].state = kind
    return found


@dataclass
class Asked:
    """A request of a writer. ``answer`` None: it is in doubt."""

    request_id: str
    what: str
    fields: dict[str, Any]
    answer: dict[str, Any] | None = None
    settled: bool = field(default=False)
    """The writer is done with it: acknowledged, or given up."""


def asked(entries: Iterable[Entry]) -> dict[str, Asked]:
    """All requests of a writer by request id."""
    found: dict[str, Asked] = {}
    for entry in entries:
        if entry["kind"] == "ask":
            found[entry["id"]] = Asked(entry["id"], entry["what"], entry["fields"])
        elif entry["kind"] == "ack":
            found[entry["id"]].answer = entry["answer"]
            found[entry["id"]].settled = True
        elif entry["kind"] == "doubt":
            found[entry["id"]].settled = True
    return found


@dataclass(frozen=True)
class Told:
    """A change as a watcher was told it. ``version`` grows with each state of the thing."""

    type: str
    resource_kind: str
    id: str
    version: int


def told(entries: Iterable[Entry]) -> list[Told]:
    """All changes, in the order in which they came."""
    return [
        Told(entry["type"], entry["resource_kind"], entry["id"], entry["version"])
        for entry in entries
        if entry["kind"] == "change"
    ]
