"""A store that holds writes, and every unary write: how it is called, and what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio

from lot_grpc.server.limits import Limits
from lot_grpc.services.records.collections import SELECTIONS
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.examples import EXAMPLES, prepare
from tests.server.service import Lot, serving
from tests.server.wire import until

WRITES = ("insert", "put", "replace", "update", "delete")


class HeldStore(InMemoryStore):
    """Holds writes while the gate is closed, or fails them; reads go on."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = 0
        self.error: Exception | None = None
        self.skip = 0
        """Writes to let through before one is held."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in WRITES:
            return found

        async def write(*args: Any, **options: Any) -> Any:
            if self.error is not None:
                raise self.error
            if not self.gate.is_set() and self.skip:
                self.skip -= 1
            elif not self.gate.is_set():
                self.held += 1
                await self.gate.wait()
            return await found(*args, **options)

        return write

    def hold(self, *, after: int = 0) -> None:
        self.held, self.skip = 0, after
        self.gate.clear()


def held_service(**limits: Any) -> tuple[HeldStore, Any]:
    clock = FixedClock()
    store = HeldStore(clock)
    return store, serving(store, clock=clock, limits=Limits(**limits))


async def settled(lot: Lot) -> None:
    """Until nothing is carried out any more, callers or not."""
    server = lot.server
    assert server is not None
    await until(lambda: server.calls_in_flight == 0)


async def _new_patterns(lot: Lot) -> list[str]:
    answer = await lot.patterns.ListPatterns(filter={"tags_any": ["new"]})
    return sorted(pattern.task for pattern in answer.patterns)


async def _new_episodes(lot: Lot) -> list[tuple[str, int, int]]:
    answer = await lot.episodes.ListEpisodes(filter={"tags_any": ["new"]})
    return [
        (e.task, e.event_count, len(await event_numbers(lot, e.episode_id)))
        for e in answer.episodes
    ]


async def event_numbers(lot: Lot, episode_id: str = "e") -> list[int]:
    answer = await lot.episodes.ListEpisodeEvents(episode_id=episode_id)
    return [event.sequence for event in answer.events]


async def _patterns(lot: Lot) -> list[tuple[str, str, int]]:
    answer = await lot.patterns.ListPatterns()
    return [(p.task, p.title, p.outcomes.usage_count) for p in answer.patterns]


async def _like_patterns(lot: Lot) -> None:
    for n in range(3):
        await lot.patterns.SavePattern(pattern={"task": f"buy {n} books"}, pattern_id=f"like-{n}")


async def _groups(lot: Lot) -> tuple[list[str], int]:
    """The templates, and how many patterns are marked as members."""
    answer = await lot.patterns.ListPatterns(filter={"kinds": [4]})
    heads = {pattern.pattern_id: pattern.task for pattern in answer.patterns}
    all_of_them = (await lot.patterns.ListPatterns(page_size=100)).patterns
    return sorted(heads.values()), sum(p.parent_pattern_id in heads for p in all_of_them)


async def _status(lot: Lot) -> int:
    return int((await lot.episodes.GetEpisode(episode_id="e")).episode.status)


async def _episodes(lot: Lot) -> list[str]:
    return [episode.episode_id for episode in (await lot.episodes.ListEpisodes()).episodes]


async def _confidences(lot: Lot) -> list[float]:
    return [pattern.confidence for pattern in (await lot.patterns.ListPatterns()).patterns]


async def _max_patterns(lot: Lot) -> int:
    return int((await lot.admin.GetNamespacePolicy()).policy.max_patterns)


async def _reviews(lot: Lot) -> Any:
    return [one.review.state for one in (await lot.memories.ListMemories()).memories]


async def _memories(lot: Lot) -> list[str]:
    answer = await lot.memories.SearchMemories(query="c")
    return sorted(hit.memory.content for hit in answer.hits)


async def _decisions(lot: Lot) -> list[tuple[str, int]]:
    answer = await lot.learning.ListDecisions()
    return [(decision.context, decision.outcome) for decision in answer.decisions]


async def _learning_events(lot: Lot) -> list[str]:
    answer = await lot.learning.ListLearningEvents()
    return [event.event_type for event in answer.learning_events]


async def _visits(lot: Lot) -> list[int]:
    answer = await lot.learning.ListActionValues(state={"task_type": "t"})
    return [value.visit_count for value in answer.action_values]


async def _selections(lot: Lot) -> int:
    assert lot.own_services is not None
    return int(await lot.own_services.learning.selections._store.count(SELECTIONS, lot.namespace))


async def _error_solutions(lot: Lot) -> list[str]:
    answer = await lot.memories.ListErrorSolutions()
    return sorted(one.error_message for one in answer.error_solutions)


async def _uses_of_solutions(lot: Lot) -> list[int]:
    answer = await lot.memories.ListErrorSolutions()
    return sorted(one.outcomes.usage_count for one in answer.error_solutions)


async def _preferences(lot: Lot) -> list[tuple[str, int]]:
    answer = await lot.memories.ListPreferences()
    return [(one.value.string_value, one.revision) for one in answer.preferences]


async def session_state(lot: Lot) -> tuple[list[str], list[int]] | None:
    """The keys and the sequences; None where there is no session."""
    try:
        session = (await lot.memories.GetSession(session_id="c")).session
    except grpc.aio.AioRpcError:
        return None
    return sorted(session.values), [message.sequence for message in session.messages]


async def _seeded(lot: Lot) -> int:
    answer = await lot.memories.SearchMemories(
        query="c", filter={"labels": {"seed": "best_practices"}}, limit=100
    )
    return len(answer.hits)


async def _pieces(lot: Lot) -> list[str]:
    answer = await lot.patterns.ListPatterns(filter={"kinds": ["PATTERN_KIND_CODE"]})
    return [pattern.title for pattern in answer.patterns]


async def _an_ended_episode(lot: Lot) -> None:
    await lot.episodes.RecordEpisode(episode={"task": "t", "task_type": "x", "status": 2})


async def _somebody(lot: Lot) -> None:
    for content in ("one", "two"):
        await lot.memories.CreateMemory(memory={"content": content, "labels": {"subject": "s"}})


async def _memories_of_somebody(lot: Lot) -> int:
    found = await lot.memories.ListMemories(filter={"labels": {"subject": "s"}})
    return len(found.memories)


WRITING: dict[str, tuple[Callable[[Lot], Awaitable[Any]], Any, Any]] = {
    "SavePattern": (_new_patterns, [], ["a new one"]),
    "BatchSavePatterns": (_new_patterns, [], ["a new one", "other"]),
    "UpdatePattern": (_patterns, [("t", "", 1)], [("edited", "edited", 1)]),
    "RecordOutcome": (_patterns, [("t", "", 1)], [("t", "", 2)]),
    "CorrectOutcome": (_patterns, [("t", "", 1)], [("t", "", 0)]),
    "DeletePattern": (_patterns, [("t", "", 1)], []),
    "ExtractPatterns": (
        _patterns,
        [("t", "", 1)],
        [('Carry out x tasks, such as "t".', "", 0), ("t", "", 1)],
    ),
    "DistillPatterns": (_groups, ([], 0), (["buy {number} books"], 3)),
    "StartEpisode": (_new_episodes, [], [("a new one", 0, 0)]),
    "RecordEpisode": (_new_episodes, [], [("a new one", 3, 3)]),
    "RecordEvent": (event_numbers, [], [1]),
    "EndEpisode": (_status, 1, 2),
    "CreateMemory": (_memories, ["c"], ["c", "c2"]),
    "BatchCreateMemories": (_memories, ["c"], ["c", "c2", "c3"]),
    "UpdateMemory": (_memories, ["c"], ["edited"]),
    "ReviewRecords": (_reviews, [0], [2]),
    "DeleteMemories": (_memories, ["c"], []),
    "DeleteMemory": (_memories, ["c"], []),
    "ClearNamespace": (_memories, ["c"], []),
    "DeleteEpisode": (_episodes, ["e"], []),
    "RecordPatternFeedback": (_confidences, [0.5], [0.6]),
    "PrunePatterns": (_confidences, [0.5], []),
    "UpdateNamespacePolicy": (_max_patterns, 0, 9),
    "RecordDecision": (_decisions, [("c", 0)], [("a new one", 0), ("c", 0)]),
    "RecordDecisionOutcome": (_decisions, [("c", 0)], [("c", 1)]),
    "DeleteDecision": (_decisions, [("c", 0)], []),
    "RecordLearningEvent": (_learning_events, ["before"], ["x", "before"]),
    "DeleteLearningEvent": (_learning_events, ["before"], []),
    "RecordSteps": (_visits, [], [1]),
    "SelectAction": (_selections, 0, 1),
    "SubmitFeedback": (_learning_events, ["before"], ["user_feedback", "before"]),
    "SaveErrorSolution": (_error_solutions, ["f", "g"], ["f", "f2", "g"]),
    "UpdateErrorSolution": (_error_solutions, ["f", "g"], ["edited", "f"]),
    "DeleteErrorSolution": (_error_solutions, ["f", "g"], ["g"]),
    "RecordErrorSolutionOutcome": (_uses_of_solutions, [0, 0], [0, 1]),
    "PutPreference": (_preferences, [("", 1)], [("v", 2)]),
    "DeletePreference": (_preferences, [("", 1)], []),
    "PutSessionValue": (session_state, (["k"], []), (["k", "k2"], [])),
    "AppendSessionMessage": (session_state, (["k"], []), (["k"], [1])),
    "ClearSession": (session_state, (["k"], []), None),
    "EraseSubject": (_memories_of_somebody, 2, 0),
    "SeedKnowledge": (_seeded, 0, 12),
    "ExtractPatternsFromCode": (_pieces, [], ["f"]),
}
"""What shows whether each write was carried out: how to look, and what is seen before and after."""

BEFORE: dict[str, Callable[[Lot], Awaitable[None]]] = {
    "DistillPatterns": _like_patterns,
    "EraseSubject": _somebody,
    "ExtractPatterns": _an_ended_episode,
}
"""What a write needs beside what is prepared for all."""

NEW = {"task": "a new one", "tags": ["new"]}
ASKS: dict[str, dict[str, Any]] = {
    "SavePattern": {"pattern": NEW},
    "BatchSavePatterns": {"items": [{"pattern": NEW}, {"pattern": NEW | {"task": "other"}}]},
    "UpdatePattern": {"pattern_id": "p", "pattern": {"task": "edited", "title": "edited"}},
    "ExtractPatterns": {"min_samples": 1},
    "DistillPatterns": {"similarity": 0.5},
    "StartEpisode": {"episode": NEW},
    "RecordEpisode": {"episode": NEW | {"status": 2}, "events": [{"event_type": "x"}] * 3},
    "CreateMemory": {"memory": {"content": "c2"}, "memory_id": "m2"},
    "BatchCreateMemories": {
        "items": [{"memory": {"content": "c2"}}, {"memory": {"content": "c3"}}]
    },
    "UpdateMemory": {"memory_id": "m", "memory": {"content": "edited"}},
    "DeleteMemories": {"filter": {"max_importance": 1}},
    "PrunePatterns": {"max_success_rate": 1},
    "RecordDecision": {"decision": {"context": "a new one", "chosen_option": "o"}},
    "SeedKnowledge": {"packs": ["best_practices"]},
    "SaveErrorSolution": {"error_solution": {"error_message": "f2", "resolution": "r"}},
    "UpdateErrorSolution": {
        "error_solution_id": "u",
        "error_solution": {"error_message": "edited"},
    },
    "PutSessionValue": {"session_id": "c", "key": "k2", "value": {"bool_value": True}},
}


async def prepared(lot: Lot, method: str) -> None:
    await prepare(lot)
    if before := BEFORE.get(method):
        await before(lot)


def service_of(method: str) -> str:
    [name] = [rpc for rpc in EXAMPLES if rpc.endswith(f".{method}")]
    return {
        "PatternService": "patterns",
        "EpisodeService": "episodes",
        "MemoryService": "memories",
        "AdminService": "admin",
        "LearningService": "learning",
    }[name.partition(".")[0]]


def ask(lot: Lot, method: str, **more: Any) -> Any:
    [name] = [rpc for rpc in EXAMPLES if rpc.endswith(f".{method}")]
    fields = ASKS.get(method, EXAMPLES[name])
    if method == "ClearNamespace":
        more["confirm_namespace"] = lot.namespace
    return getattr(getattr(lot, service_of(method)), method)(**fields, **more)


async def awaited(call: Any) -> Any:
    return await call


async def code_of(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"
