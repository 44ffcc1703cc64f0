"""Steps with all that belongs to a subject."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.session import SessionMessage
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.sessions.session_messages import MessageDraft
from tests.services.world import (
    World,
    decision,
    draft,
    error_solution,
    learning_event,
    memory,
    whole,
)

ALICE = {"subject": "alice"}


async def of_alice(world: World, ns: str) -> None:
    """One record of each kind of a subject, one of another, and what recalls showed of them."""
    services = world.services
    await services.patterns.writer.save(ns, draft("hers", pattern_id="p", labels=ALICE))
    await services.patterns.writer.save(ns, draft("shared", pattern_id="q"))
    await services.memories.memories.create(ns, memory("hers", memory_id="m", labels=ALICE))
    await services.memories.memories.create(ns, memory("his", memory_id="n"))
    await services.errors.solutions.save(ns, error_solution(error_solution_id="s", labels=ALICE))
    await services.episodes.creator.record(ns, whole(2, episode_id="e"))
    await services.learning.decisions.record(ns, decision(decision_id="d", labels=ALICE))
    await services.learning.learning_events.record(
        ns, learning_event(learning_event_id="l", labels=ALICE)
    )
    for value in ("one", "two"):
        await services.preferences.put(ns, PreferenceDraft("alice:theme", value))
    said = MessageDraft("alice:1", SessionMessage("user", "hello"))
    await services.sessions.messages.append(ns, said)
    for ids in (("p",), ("q",)):
        used = OutcomeDraft(ids, Outcome.SUCCESS, query="what alice wants", note="for alice")
        await services.outcomes.recorder.record(ns, used)
    recalled = pattern_request(RecallOptions("hers", 3), PatternFilter())
    await services.recall.patterns.find(ns, recalled)
    await services.runtime.retrievals.flush()


async def erases_alice(world: World, ns: str) -> Any:
    return await world.services.clearing.eraser.erase(ns, "alice")
