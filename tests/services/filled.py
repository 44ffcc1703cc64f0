"""A namespace that holds something of everything."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.session import SessionMessage
from lot_grpc.ports import VectorStore
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.sessions.session_messages import MessageDraft
from tests.services.world import (
    World,
    decision,
    draft,
    end,
    error_solution,
    events,
    judgement,
    learning_event,
    memory,
    rows,
    select,
    start,
    steps,
)

EVERYWHERE = sorted({*REGISTRY.resource_collections, *REGISTRY.bookkeeping})


async def fill(world: World, ns: str, count: int = 3) -> None:
    """Store ``count`` of the most important kinds, and at least one of the others."""
    services = world.services
    for n in range(count):
        await services.patterns.writer.save(
            ns, draft(f"task {n}", pattern_id=f"p{n}", request_id=f"p{n}")
        )
        await services.memories.memories.create(ns, memory(f"fact {n}", memory_id=f"m{n}"))
        await services.errors.solutions.save(
            ns, error_solution(f"KeyError: 'k{n}'", error_solution_id=f"s{n}")
        )
        await services.episodes.creator.start(ns, start(episode_id=f"e{n}"))
        writer = await services.episodes.recorder.open(ns, f"e{n}", TakeoverPolicy.REPLACE)
        await services.episodes.recorder.append(writer, events(1, 4))
        await services.episodes.recorder.close(writer)
        await services.learning.decisions.record(ns, decision(f"Which {n}?", decision_id=f"d{n}"))
        await services.learning.learning_events.record(
            ns, learning_event(learning_event_id=f"l{n}")
        )
    await services.patterns.writer.save(ns, draft("by content"))
    await services.episodes.ender.end(ns, "e0", end(), "")
    used = OutcomeDraft(("p0", "p1"), Outcome.SUCCESS, query="how")
    await services.outcomes.recorder.record(ns, used)
    others = OutcomeDraft(
        (), Outcome.FAILURE, query="how", memory_ids=("m1",), episode_ids=("e0",),
        error_solution_ids=("s0",),
    )  # fmt: skip
    await services.outcomes.recorder.record(ns, others)
    await services.patterns.feedback.give(ns, FeedbackDraft("p0", helpful=True))
    await services.learning.selections.select(ns, select("a", "b", seed=1))
    await services.learning.step_recorder.record(ns, steps(("a", 1.0), ("b", 0.5)))
    for _ in range(2):  # a preference and its former value
        await services.learning.feedback_handler.submit(
            ns, judgement(text="Great report", reward=1.0)
        )
    edit = PolicyEdit(NamespacePolicy(max_patterns=90), frozenset({"max_patterns"}))
    await services.retention.policies.update(ns, edit, "")
    for number in range(2):  # the latest message lies with its session, the others beside it
        said = MessageDraft("chat", SessionMessage("user", f"message {number}"))
        await services.sessions.messages.append(ns, said)
    recalled = pattern_request(RecallOptions("how", 3), PatternFilter())
    await services.recall.patterns.find(ns, recalled)
    await services.runtime.retrievals.flush()
    await services.memories.memories.delete(ns, "m0", "")


async def held(store: VectorStore, ns: str) -> dict[str, list[Any]]:
    """All that a namespace holds, by collection; those with nothing are left out."""
    found = {name: await rows(store, name, ns) for name in EVERYWHERE}
    return {name: records for name, records in found.items() if records}
