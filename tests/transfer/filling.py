"""Fills a running server through its calls: so many things, with so many events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2_grpc,
    decision_pb2,
    episode_pb2,
    episode_service_pb2,
    episode_service_pb2_grpc,
    error_solution_pb2,
    learning_event_pb2,
    learning_service_pb2_grpc,
    memory_pb2,
    memory_service_pb2,
    memory_service_pb2_grpc,
    namespace_policy_pb2,
    outcome_pb2,
    pattern_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
    preference_pb2,
    session_pb2,
)

_CALLERS = 8
_BATCH = 100
_VERBS = [
    "add",
    "cache",
    "check",
    "clean",
    "convert",
    "debug",
    "deploy",
    "fix",
    "lint",
    "merge",
    "migrate",
    "parse",
    "retry",
]
_THINGS = [
    "form",
    "report",
    "upload",
    "search",
    "page",
    "export",
    "webhook",
    "avatar",
    "session",
    "backup",
    "banner",
    "queue",
]
_PLACES = [
    "panel",
    "client",
    "proxy",
    "cluster",
    "monorepo",
    "service",
    "checkout",
    "website",
    "pipeline",
    "suite",
]
SHARES = {
    "patterns": 0.58, "memories": 0.08, "solutions": 0.04, "episodes": 0.16,
    "learning_events": 0.06, "decisions": 0.06, "preferences": 0.01, "sessions": 0.01,
}  # fmt: skip
"""Of all things; of each kind at least one."""

Call = Callable[[], Any]


def _new(kind: Any, **fields: Any) -> Any:
    """A message; its parts may be given as dicts, which its stubs do not know."""
    return kind(**fields)


def text(number: int) -> str:
    """A distinct short task."""
    chosen = random.Random(number)
    words = (chosen.choice(_VERBS), chosen.choice(_THINGS), chosen.choice(_PLACES))
    return f"{' '.join(words)} {number}"


class Filling:
    """Everything that a namespace may hold."""

    def __init__(self, address: str, things: int, events: int) -> None:
        self._counts = {
            resource_kind: max(1, round(things * part)) for resource_kind, part in SHARES.items()
        }
        self._events_each = max(1, round(events / self._counts["episodes"]))
        self._address = address

    def fill(self) -> None:
        """Make all the calls, some at once. Raises RpcError."""
        with (
            grpc.insecure_channel(
                self._address, options=[("grpc.enable_http_proxy", 0)]
            ) as channel,
            ThreadPoolExecutor(_CALLERS) as callers,
        ):
            for calls in (self._things(channel), self._outcomes(channel)):
                for done in [callers.submit(call) for call in calls]:
                    done.result()

    def _things(self, channel: grpc.Channel) -> Iterator[Call]:
        patterns = pattern_service_pb2_grpc.PatternServiceStub(channel)
        memories = memory_service_pb2_grpc.MemoryServiceStub(channel)
        episodes = episode_service_pb2_grpc.EpisodeServiceStub(channel)
        learning = learning_service_pb2_grpc.LearningServiceStub(channel)
        counts = self._counts
        for first in range(0, counts["patterns"], _BATCH):
            numbers = range(first, min(first + _BATCH, counts["patterns"]))
            batch = pattern_service_pb2.BatchSavePatternsRequest(items=map(_pattern, numbers))
            yield lambda batch=batch: patterns.BatchSavePatterns(batch)  # type: ignore[misc]
        for number in range(counts["episodes"]):
            yield lambda n=number: episodes.RecordEpisode(  # type: ignore[misc]
                _episode(n, self._events_each)
            )
        for number in range(counts["memories"]):
            yield lambda n=number: memories.CreateMemory(_memory(n))  # type: ignore[misc]
        for number in range(counts["solutions"]):
            yield lambda n=number: memories.SaveErrorSolution(_solution(n))  # type: ignore[misc]
        for number in range(counts["learning_events"]):
            yield lambda n=number: learning.RecordLearningEvent(  # type: ignore[misc]
                _learning_event(n)
            )
        for number in range(counts["decisions"]):
            yield lambda n=number: learning.RecordDecision(_decision(n))  # type: ignore[misc]
        for number in range(counts["preferences"]):
            yield lambda n=number: _preferences(memories, n)  # type: ignore[misc]
        for number in range(counts["sessions"]):
            yield lambda n=number: _session(memories, n)  # type: ignore[misc]
        policy = _new(
            namespace_policy_pb2.UpdateNamespacePolicyRequest, policy={"max_patterns": 1_000_000}
        )
        admin = admin_service_pb2_grpc.AdminServiceStub(channel)
        yield lambda: admin.UpdateNamespacePolicy(policy)

    def _outcomes(self, channel: grpc.Channel) -> Iterator[Call]:
        """On every hundredth pattern, asked in a few ways."""
        patterns = pattern_service_pb2_grpc.PatternServiceStub(channel)
        for number in range(0, self._counts["patterns"], 100):
            for way in range(3):
                request = pattern_service_pb2.RecordOutcomeRequest(
                    pattern_ids=[f"p{number}"],
                    outcome=outcome_pb2.OUTCOME_SUCCESS,
                    query=f"how to {text(number + way)}",
                )
                yield lambda request=request: patterns.RecordOutcome(request)  # type: ignore[misc]
            helpful = pattern_service_pb2.RecordPatternFeedbackRequest(
                pattern_id=f"p{number}", helpful=number % 3 == 0
            )
            yield lambda helpful=helpful: patterns.RecordPatternFeedback(helpful)  # type: ignore[misc]


def _pattern(number: int) -> pattern_service_pb2.SavePatternItem:
    pattern = _new(
        pattern_pb2.Pattern,
        task=text(number),
        language=("python", "go", "rust")[number % 3],
        tags=[f"t{number % 17}"],
        labels={"team": f"team-{number % 5}"},
        metadata={"number": number, "half": number / 2},
    )
    named = f"p{number}" if number % 100 == 0 else ""  # the others hold a claim
    return pattern_service_pb2.SavePatternItem(pattern=pattern, pattern_id=named)


def _episode(number: int, events: int) -> episode_service_pb2.RecordEpisodeRequest:
    episode = episode_pb2.Episode(
        task=text(number),
        category=f"c{number % 7}",
        status=episode_pb2.EPISODE_STATUS_SUCCEEDED,
        summary=f"episode {number} went well",
    )
    steps = [
        _new(
            episode_pb2.EpisodeEvent,
            event_type="tool_call",
            agent_role="coder",
            data={"tool": "shell", "command": f"make step-{step}", "seconds": step / 3},
        )
        for step in range(events)
    ]
    return episode_service_pb2.RecordEpisodeRequest(
        episode=episode, episode_id=f"e{number}", events=steps
    )


def _memory(number: int) -> memory_service_pb2.CreateMemoryRequest:
    memory = memory_pb2.Memory(content=f"to {text(number)} takes care", tags=[f"t{number % 9}"])
    return memory_service_pb2.CreateMemoryRequest(memory=memory, memory_id=f"m{number}")


def _solution(number: int) -> Any:
    return _new(
        error_solution_pb2.SaveErrorSolutionRequest,
        error_solution={
            "error_message": f"TypeError: cannot {text(number)}",
            "resolution": "convert it first",
        },
        error_solution_id=f"s{number}",
    )


def _learning_event(number: int) -> learning_event_pb2.RecordLearningEventRequest:
    event = learning_event_pb2.LearningEvent(event_type="success", reward=0.5)
    return learning_event_pb2.RecordLearningEventRequest(
        learning_event=event, learning_event_id=f"l{number}"
    )


def _decision(number: int) -> decision_pb2.RecordDecisionRequest:
    decision = decision_pb2.Decision(context=text(number), chosen_option="the first")
    return decision_pb2.RecordDecisionRequest(decision=decision, decision_id=f"d{number}")


def _preferences(memories: memory_service_pb2_grpc.MemoryServiceStub, number: int) -> None:
    for value in ("dark", "light", "dark again"):
        memories.PutPreference(
            _new(
                preference_pb2.PutPreferenceRequest,
                key=f"theme{number}",
                value={"string_value": value},
            )
        )


def _session(memories: memory_service_pb2_grpc.MemoryServiceStub, number: int) -> None:
    session = f"c{number}"
    memories.PutSessionValue(
        _new(
            session_pb2.PutSessionValueRequest,
            session_id=session,
            key="k",
            value={"number_value": number},
        )
    )
    for content in ("hello", "what now?"):
        memories.AppendSessionMessage(
            _new(
                session_pb2.AppendSessionMessageRequest,
                session_id=session,
                message={"role": "user", "content": content},
            )
        )
