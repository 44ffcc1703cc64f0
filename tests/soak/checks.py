"""What must hold at the end, of journals and of what the server has. Each check says what is wrong.

Nothing here talks to a server, so that the tests can plant each kind of damage.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.soak import content
from tests.soak.books import Asked, Recorded, Told

ENDED = ("SUCCEEDED", "FAILED")


@dataclass
class StoredPattern:
    """A pattern as the server has it. ``log`` has (note, outcome) of each entry of its log."""

    task: str
    usage: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    version: int = 0
    log: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class StoredEpisode:
    """An episode as the server has it. ``events`` has (sequence, digest) of each, as listed."""

    task: str
    status: str
    event_count: int
    events: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Stored:
    """All that the server has, by id."""

    patterns: dict[str, StoredPattern] = field(default_factory=dict)
    episodes: dict[str, StoredEpisode] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)


def check_episodes(stored: Stored) -> list[str]:
    """No gap, nothing twice, nothing out of order, and each counts what it has."""
    wrong = []
    for name, episode in stored.episodes.items():
        numbers = [sequence for sequence, _ in episode.events]
        if numbers != list(range(1, len(numbers) + 1)):
            wrong.append(f"{name}: sequences are not 1, 2, 3, …: {_first_break(numbers)}")
        if episode.event_count != len(numbers):
            wrong.append(f"{name}: counts {episode.event_count} events and has {len(numbers)}")
    return wrong


def check_recorded(books: Iterable[Recorded], stored: Stored) -> list[str]:
    """What a recorder acknowledged is stored once, in order, equal; the rest at most once."""
    wrong = []
    for book in books:
        episode = stored.episodes.get(book.episode)
        if episode is None:
            if book.acked or book.state in {"ending", "ended"}:
                wrong.append(f"{book.episode}: it is gone, {book.acked} acknowledged")
            continue
        stored_count = len(episode.events)
        least = max(book.acked, book.count if book.state == "ended" else 0)
        if stored_count < least:
            wrong.append(f"{book.episode}: {least} acknowledged, {stored_count} stored")
        if stored_count > book.sent:
            wrong.append(f"{book.episode}: {book.sent} sent, {stored_count} stored")
        for place, (_, digest) in enumerate(episode.events, 1):
            if digest != content.event_digest(book.episode, place):
                wrong.append(f"{book.episode}: event {place} is not what was sent")
                break
        if book.state == "ended" and episode.status not in ENDED:
            wrong.append(f"{book.episode}: its end was acknowledged, and it is {episode.status}")
        if book.state == "open":
            wrong.append(f"{book.episode}: its recorder never finished")
        if book.state == "ending":
            wrong.append(f"{book.episode}: its end was never acknowledged")
    return wrong


def check_asked(asks: Sequence[Asked], stored: Stored) -> list[str]:
    """What writers had acknowledged is there once; what is in doubt at most once."""
    return [
        *_check_saves(asks, stored),
        *_check_counters(asks, stored),
        *_check_single_events(asks, stored),
        *_check_whole_episodes(asks, stored),
        *_check_memories(asks, stored),
    ]


def _of(asks: Iterable[Asked], what: str) -> list[Asked]:
    return [ask for ask in asks if ask.what == what]


def _check_saves(asks: Sequence[Asked], stored: Stored) -> list[str]:
    wrong = []
    tasks = Counter(pattern.task for pattern in stored.patterns.values())
    wrong += [f"pattern {task!r} is stored {n} times" for task, n in tasks.items() if n > 1]
    deleted = {ask.fields["pattern_id"]: ask for ask in _of(asks, "delete")}
    for ask in _of(asks, "save"):
        if ask.answer is None:
            continue
        name = ask.answer["pattern_id"]
        pattern = stored.patterns.get(name)
        if name in deleted:
            if pattern is not None and deleted[name].answer is not None:
                wrong.append(f"pattern {name} is back: its delete was acknowledged")
        elif pattern is None:
            wrong.append(f"pattern {name} is gone: its save was acknowledged")
        elif pattern.task != ask.fields["task"]:
            wrong.append(f"pattern {name} has another task than was saved")
    updates: dict[str, list[Asked]] = defaultdict(list)
    for ask in _of(asks, "update"):
        updates[ask.fields["pattern_id"]].append(ask)
    for name, several in updates.items():
        pattern = stored.patterns.get(name)
        acked = max((one.fields["version"] for one in several if one.answer is not None), default=0)
        sent = max(one.fields["version"] for one in several)
        if pattern is not None and not acked <= pattern.version <= sent:
            wrong.append(
                f"pattern {name} has version {pattern.version}: {acked} acknowledged, {sent} sent"
            )
    return wrong


def _check_counters(asks: Sequence[Asked], stored: Stored) -> list[str]:
    """A counter equals its log, and the log has each acknowledged outcome once."""
    wrong = []
    outcomes = {ask.request_id: ask for ask in _of(asks, "outcome")}
    for name in content.HOT:
        pattern = stored.patterns.get(name)
        if pattern is None:
            wrong.append(f"pattern {name} is gone")
            continue
        kinds = Counter(outcome for _, outcome in pattern.log)
        counted = {kind: n for kind, n in pattern.counts.items() if n}
        if counted != dict(kinds) or pattern.usage != len(pattern.log):
            wrong.append(
                f"pattern {name} counts {pattern.usage} ({counted}), its log has "
                f"{len(pattern.log)} ({dict(kinds)})"
            )
        notes = Counter(note for note, _ in pattern.log)
        wrong += [
            f"pattern {name}: outcome {note} is there {n} times"
            for note, n in notes.items()
            if n > 1
        ]
        wrong += [
            f"pattern {name}: outcome {ask.request_id} is lost: it was acknowledged"
            for ask in outcomes.values()
            if ask.answer is not None
            and name in ask.fields["pattern_ids"]
            and ask.request_id not in notes
        ]
        for note, outcome in pattern.log:
            known = outcomes.get(note)
            if known is None or name not in known.fields["pattern_ids"]:
                wrong.append(f"pattern {name}: nobody recorded outcome {note!r}")
            elif known.fields["outcome"] != outcome:
                wrong.append(f"pattern {name}: outcome {note} is another than was recorded")
    return wrong


def _check_single_events(asks: Sequence[Asked], stored: Stored) -> list[str]:
    wrong = []
    places: dict[str, Counter[str]] = {}
    for ask in _of(asks, "event"):
        name, number = ask.fields["episode_id"], ask.fields["number"]
        episode = stored.episodes.get(name)
        if episode is None:
            if ask.answer is not None:
                wrong.append(f"{name} is gone: an event of it was acknowledged")
            continue
        if name not in places:
            places[name] = Counter(digest for _, digest in episode.events)
        digest = content.event_digest(name, number)
        count = places[name][digest]
        if count > 1:
            wrong.append(f"{name}: event {ask.request_id} is stored {count} times")
        if ask.answer is not None:
            sequence = ask.answer["sequence"]
            if (sequence, digest) not in episode.events[sequence - 1 : sequence]:
                wrong.append(f"{name}: event {ask.request_id} is not at {sequence}")
    for name, counts in places.items():
        sent = {
            content.event_digest(name, ask.fields["number"])
            for ask in _of(asks, "event")
            if ask.fields["episode_id"] == name
        }
        if set(counts) - sent:
            wrong.append(f"{name}: it has events that nobody sent")
    return wrong


def _check_whole_episodes(asks: Sequence[Asked], stored: Stored) -> list[str]:
    wrong = []
    by_task: dict[str, list[str]] = defaultdict(list)
    for name, episode in stored.episodes.items():
        by_task[episode.task].append(name)
    for ask in _of(asks, "episode"):
        found = by_task.get(ask.fields["task"], [])
        if len(found) > 1:
            wrong.append(f"episode {ask.request_id} is stored {len(found)} times")
        if not found:
            if ask.answer is not None:
                wrong.append(f"episode {ask.request_id} is gone: it was acknowledged")
            continue
        episode = stored.episodes[found[0]]
        if ask.answer is not None and ask.answer["episode_id"] != found[0]:
            wrong.append(f"episode {ask.request_id} has another id than was told")
        wanted = [
            content.event_digest(ask.request_id, number + 1)
            for number in range(ask.fields["count"])
        ]
        got = [digest for _, digest in episode.events]
        # In doubt it may be there in part: the next repeat finishes it.
        if got != wanted[: len(got)] or (ask.answer is not None and got != wanted):
            wrong.append(f"episode {ask.request_id} has other events than were sent")
        if ask.answer is not None and episode.status not in ENDED:
            wrong.append(f"episode {ask.request_id} is {episode.status}")
    return wrong


def _check_memories(asks: Sequence[Asked], stored: Stored) -> list[str]:
    wrong = []
    forgotten = {ask.fields["memory_id"]: ask for ask in _of(asks, "forget")}
    for ask in _of(asks, "memory"):
        name = ask.request_id
        held = stored.memories.get(name)
        if held is not None and held != ask.fields["content"]:
            wrong.append(f"memory {name} has another content than was stored")
        if name in forgotten:
            if held is not None and forgotten[name].answer is not None:
                wrong.append(f"memory {name} is back: its delete was acknowledged")
        elif held is None and ask.answer is not None:
            wrong.append(f"memory {name} is gone: it was acknowledged")
    return wrong


def check_told(changes: Sequence[Told], asks: Sequence[Asked], stored: Stored) -> list[str]:
    """A watcher was told of everything at least once and, of each thing, in order.

    In order: no thing's version goes back, nothing is told of after its delete, and the last word
    on each is how it is now.
    """
    wrong = []
    last: dict[tuple[str, str], Told] = {}
    for change in changes:
        key = (change.noun, change.id)
        before = last.get(key)
        if before is not None and change.type != "DELETED":
            if before.type == "DELETED":
                wrong.append(f"{change.id} was told as {change.type} after its delete")
            elif change.version < before.version:
                wrong.append(f"{change.id} went from {before.version} back to {change.version}")
        last[key] = change
    now = _versions(stored)
    for key, version in now.items():
        told = last.get(key)
        if told is None:
            wrong.append(f"{key[1]} is there, and was never told")
        elif told.type == "DELETED":
            wrong.append(f"{key[1]} is there, and was told as deleted")
        elif told.version != version:
            wrong.append(f"{key[1]} is at {version}, and was last told at {told.version}")
    wrong += [
        f"{name} was deleted, and its last word was {told.type}"
        for (_, name), told in last.items()
        if (told.noun, name) not in now and told.type != "DELETED"
    ]
    wrong += [
        f"{name} was deleted, and that was never told"
        for noun, name in _deletes(asks)
        if (noun, name) not in last
    ]
    return wrong


def _versions(stored: Stored) -> dict[tuple[str, str], int]:
    now = {("PATTERN", name): p.usage + p.version for name, p in stored.patterns.items()}
    now |= {("EPISODE", name): int(e.status in ENDED) for name, e in stored.episodes.items()}
    return now | {("MEMORY", name): 0 for name in stored.memories}


def _deletes(asks: Iterable[Asked]) -> list[tuple[str, str]]:
    found = []
    for ask in asks:
        if ask.answer is None:
            continue
        if ask.what == "delete":
            found.append(("PATTERN", ask.fields["pattern_id"]))
        elif ask.what == "forget":
            found.append(("MEMORY", ask.fields["memory_id"]))
    return found


def check_offline(events: Mapping[str, list[int]], stored: Stored) -> list[str]:
    """The store, read without a server, has the sequences that the server listed."""
    wrong = [
        f"{name}: the store has other sequences than the server listed"
        for name, episode in stored.episodes.items()
        if sorted(events.get(name, [])) != [sequence for sequence, _ in episode.events]
    ]
    return wrong + [
        f"{name}: events without their episode"
        for name in sorted(set(events) - set(stored.episodes))
    ]


def _first_break(numbers: Sequence[int]) -> str:
    for place, number in enumerate(numbers, 1):
        if number != place:
            return f"{number} stands where {place} belongs"
    return "none"
