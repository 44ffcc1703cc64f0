"""A small run in which all is well, for the tests of the checker."""

from __future__ import annotations

from tests.soak import checks, content
from tests.soak.books import Asked, Recorded, Told
from tests.soak.checks_asked import check_asked
from tests.soak.stored import Stored, StoredEpisode, StoredPattern

AGENT, SINGLE, WHOLE = "agent-0-1", "writer-0-single", "writer-0-0-9"


class World:
    """Journals, a store and a watcher that agree."""

    def __init__(self) -> None:
        self.book = Recorded(AGENT, 5, sent=5, acked=5, state="ended")
        self.left = Recorded("agent-0-2", 9, sent=4, acked=2, state="left")
        self.asks = [
            Asked("o1", "outcome", {"pattern_ids": ["hot-0", "hot-1"], "outcome": "SUCCESS"}, {}),
            Asked("o2", "outcome", {"pattern_ids": ["hot-0"], "outcome": "FAILURE"}),
            Asked("s1", "save", {"task": "a task"}, {"pattern_id": "p1"}),
            Asked("s1-v1", "update", {"pattern_id": "p1", "version": 1}, {}),
            Asked("s1-v2", "update", {"pattern_id": "p1", "version": 2}),
            Asked("s2", "save", {"task": "of short life"}, {"pattern_id": "p2"}),
            Asked("s2-delete", "delete", {"pattern_id": "p2"}, {}),
            Asked("e1", "event", {"episode_id": SINGLE, "number": 7}, {"sequence": 1}),
            Asked("e2", "event", {"episode_id": SINGLE, "number": 8}),
            Asked(WHOLE, "episode", {"task": "whole", "count": 2}, {"episode_id": "ep-1"}),
            Asked("m1", "memory", {"content": "one"}, {}),
            Asked("m2", "memory", {"content": "two"}, {}),
            Asked("m2-forget", "forget", {"memory_id": "m2"}, {}),
        ]
        self.stored = Stored(
            patterns={name: StoredPattern(content.task(name)) for name in content.HOT},
            memories={"m1": "one"},
        )
        self.stored.patterns["p1"] = StoredPattern("a task", version=1)
        self._count("hot-0", [("o1", "SUCCESS"), ("o2", "FAILURE")])
        self._count("hot-1", [("o1", "SUCCESS")])
        self._episode(AGENT, AGENT, [1, 2, 3, 4, 5], "SUCCEEDED")
        self._episode("agent-0-2", "agent-0-2", [1, 2, 3], "RUNNING")
        self._episode(SINGLE, SINGLE, [7, 8], "RUNNING")
        self._episode("ep-1", WHOLE, [1, 2], "SUCCEEDED", task="whole")
        self.told = [
            Told("STORED", "PATTERN", "p1", 0),
            Told("STORED", "PATTERN", "p2", 0),
            Told("STORED", "EPISODE", AGENT, 0),
            Told("UPDATED", "PATTERN", "p1", 1),
            Told("UPDATED", "EPISODE", AGENT, 1),
            Told("STORED", "EPISODE", "agent-0-2", 0),
            Told("STORED", "EPISODE", SINGLE, 0),
            Told("STORED", "EPISODE", "ep-1", 1),
            *(
                Told("STORED", "PATTERN", name, self.stored.patterns[name].usage)
                for name in content.HOT
            ),
            Told("STORED", "MEMORY", "m1", 0),
            Told("DELETED", "PATTERN", "p2", 0),
            Told("DELETED", "MEMORY", "m2", 0),
        ]
        self.offline = {
            name: [sequence for sequence, _ in episode.events]
            for name, episode in self.stored.episodes.items()
        }

    def wrong(self) -> list[str]:
        return [
            *checks.check_episodes(self.stored),
            *checks.check_recorded([self.book, self.left], self.stored),
            *check_asked(self.asks, self.stored),
            *checks.check_told(self.told, self.asks, self.stored),
            *checks.check_offline(self.offline, self.stored),
        ]

    def events(self, name: str = AGENT) -> list[tuple[int, str]]:
        return self.stored.episodes[name].events

    def ask(self, request_id: str) -> Asked:
        return next(ask for ask in self.asks if ask.request_id == request_id)

    def _count(self, name: str, log: list[tuple[str, str]]) -> None:
        counts = {kind: sum(kind == one for _, one in log) for _, kind in log}
        pattern = self.stored.patterns[name]
        pattern.log, pattern.counts, pattern.usage = log, counts, len(log)

    def _episode(self, name: str, of: str, numbers: list[int], status: str, task: str = "") -> None:
        events = [(n, content.event_digest(of, number)) for n, number in enumerate(numbers, 1)]
        task = task or content.task(name)
        self.stored.episodes[name] = StoredEpisode(task, status, len(events), events)
