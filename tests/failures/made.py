"""Episodes that failed of planted causes, told in different words, with successes between them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.episode import (
    EpisodeEnd,
    EpisodeError,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
)
from lot_grpc.services.episodes.drafts import EpisodeDraft
from tests.failures.causes import Causes, Told

DAY = 86_400_000_000
SILENT = ""
"""The cause of those that tell nothing."""

_NAMES = (  # noqa: SIM905 - read as words
    "aurora billing catalog dispatch ember falcon gateway harbor indexer juniper kestrel ledger"
    " mosaic nimbus orchid parcel quartz ripple saffron timber umbra vertex willow yonder zephyr"
).split()
_DOMAINS = ("internal", "example.com", "svc.cluster.local", "corp.example.org")
_FOLDERS = ("/var/lib", "/home/agent", "/tmp/build", "/srv/data", "/opt/app", "C:/work")
_ENDINGS = ("log", "bin", "json", "py", "csv", "go")
_TASKS = (
    "Deploy the {name} service to staging",
    "Run the nightly import of {name}",
    "Write tests for the {name} endpoint",
    "Migrate the {name} tables",
    "Summarise the tickets of {name}",
    "Build the container image of {name}",
)
_TOOLS = ("bash", "http", "sql", "pytest", "docker", "editor")


@dataclass(frozen=True)
class Planted:
    """An episode to record and its cause; None: it succeeded."""

    draft: EpisodeDraft
    cause: str | None


def planted(causes: Causes, *, seed: int, each: int = 40, silent: int = 12, good: int = 48):
    """``each`` failures of each cause, ``silent`` that tell nothing, ``good`` successes; mixed."""
    chance = random.Random(seed)
    plan = [cause for cause in causes for _ in range(each)]
    mixed: list[str | None] = [*plan, *[SILENT] * silent, *[None] * good]
    chance.shuffle(mixed)
    ways_of = {cause: _dealt(list(ways), each, chance) for cause, ways in causes.items()}
    return [
        _episode(n, cause, ways_of[cause].pop() if cause else None, chance)
        for n, cause in enumerate(mixed)
    ]


def _dealt(ways: list[Told], count: int, chance: random.Random) -> list[Told]:
    """Each wording about equally often."""
    dealt = (ways * (count // len(ways) + 1))[:count]
    chance.shuffle(dealt)
    return dealt


def _episode(n: int, cause: str | None, way: Told | None, chance: random.Random) -> Planted:
    start = EpisodeStart(
        chance.choice(_TASKS).format(name=chance.choice(_NAMES)),
        approach=chance.choice(("standard", "incremental", "test_first")),
        start_time=(20_000 + n % 28) * DAY + n,
    )
    status = EpisodeStatus.SUCCEEDED if cause is None else EpisodeStatus.FAILED
    tool = chance.choice(_TOOLS)
    events = [told("plan", note="look around"), told("tool_call", tool=tool)]
    error: EpisodeError | None = None
    patterns: tuple[str, ...] = ()
    if way is not None:
        kind, message = way[0], filled(way[1], chance)
        where = n % 10
        if where < 6:
            error = EpisodeError(kind, message)
        elif where < 9:
            events.append(told("tool_error", tool=tool, error_type=kind, error_message=message))
        else:
            patterns = (f"{kind}: {message}" if kind else message,)
    elif cause is None and n % 3 == 0:  # met and overcome: no failure
        events.append(told("tool_error", tool=tool, error="exit status 1"))
    end = EpisodeEnd(status, error=error, error_patterns=patterns)
    draft = EpisodeDraft(start, f"e-{n:04}", end=end, events=tuple(events))
    return Planted(draft, cause)


def filled(template: str, chance: random.Random) -> str:
    folder, file = chance.choice(_FOLDERS), f"{chance.choice(_NAMES)}.{chance.choice(_ENDINGS)}"
    ip = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    return template.format(
        ip=ip,
        host=f"{chance.choice(_NAMES)}-{chance.randrange(9)}.{chance.choice(_DOMAINS)}",
        n=chance.randrange(1, 90),
        m=chance.randrange(1000, 60_000),
        name=chance.choice(_NAMES),
        path=f"{folder}/{chance.choice(_NAMES)}/{file}",
        hash=f"{chance.getrandbits(28):07x}",
        time=f"2024-0{chance.randrange(1, 9)}-1{chance.randrange(9)}T10:{chance.randrange(10, 59)}",
    )


def told(event_type: str, **data: str) -> EpisodeEvent:
    """An event with data."""
    struct = Struct()
    struct.update(data)
    return EpisodeEvent(0, event_type, data=struct.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class Quality:
    """``purity``: share of the failures that are in a group of mostly their cause. ``least_pure``
    and ``least_complete``: of the worst group, of the worst cause (its share in its own group).

    ``groups``: how many there are, the silent one left out.
    """

    groups: int
    purity: float
    least_pure: float
    least_complete: float


def quality(groups: Sequence[Sequence[str]], cause_of: Mapping[str, str]) -> Quality:
    """How well groups of names meet their causes; the silent ones left out."""
    counts = [Counter(cause_of[name] for name in group) for group in groups]
    counts = [one for one in counts if set(one) != {SILENT}]
    total = sum(one.total() for one in counts)
    whole = Counter(cause for cause in cause_of.values() if cause != SILENT)
    return Quality(
        len(counts),
        sum(max(one.values()) for one in counts) / total,
        min(max(one.values()) / one.total() for one in counts),
        min(max(one[cause] for one in counts) / whole[cause] for cause in whole),
    )
