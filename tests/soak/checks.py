"""What must hold at the end, of journals and of what the server has. Each check says what is wrong.

Nothing here talks to a server, so that the tests can plant each kind of damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.soak import content
from tests.soak.books import Asked, Recorded, Told
from tests.soak.stored import ENDED, Stored


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


def check_told(changes: Sequence[Told], asks: Sequence[Asked], stored: Stored) -> list[str]:
    """A watcher was told of everything at least once and, of each thing, in order.

    In order: no thing's version goes back, nothing is told of after its delete, and the last word
    on each is how it is now.
    """
    wrong = []
    last: dict[tuple[str, str], Told] = {}
    for change in changes:
        key = (change.resource_kind, change.id)
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
        if (told.resource_kind, name) not in now and told.type != "DELETED"
    ]
    wrong += [
        f"{name} was deleted, and that was never told"
        for resource_kind, name in _deletes(asks)
        if (resource_kind, name) not in last
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
