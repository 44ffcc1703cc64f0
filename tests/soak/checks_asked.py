"""What must hold of what writers asked for: acknowledged it is there once, in doubt once or not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.soak import content
from tests.soak.books import Asked
from tests.soak.stored import ENDED, Stored


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
