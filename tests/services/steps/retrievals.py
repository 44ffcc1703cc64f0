"""Recalls that are written, and outcomes of a recall whose query is only known as a hash."""

from __future__ import annotations

from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.retrieval import RetrievalQueries
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.records.collections import RETRIEVALS
from tests.services.world import World, draft, rows


async def recalls(world: World, ns: str) -> None:
    """More than are written at once."""
    for number in range(70):
        request = pattern_request(RecallOptions(f"how {number}", 3), PatternFilter())
        await world.services.recall.patterns.find(ns, request)
    await world.services.runtime.retrievals.flush()


async def a_hashed_recall(world: World, ns: str) -> None:
    policy = NamespacePolicy(retrieval_queries=RetrievalQueries.HASH)
    edit = PolicyEdit(policy, frozenset({"retrieval_queries"}))
    await world.services.retention.policies.update(ns, edit, "")
    await world.services.patterns.writer.save(ns, draft("how", pattern_id="p0"))
    request = pattern_request(RecallOptions("how", 3), PatternFilter())
    await world.services.recall.patterns.find(ns, request)
    await world.services.runtime.retrievals.flush()


async def outcome_of_hashed(world: World, ns: str) -> None:
    [row] = await rows(world.store, RETRIEVALS, ns)
    named = {"retrieval_id": row.payload["retrieval_id"], "request_id": "r"}
    used = OutcomeDraft(("p0",), Outcome.SUCCESS, **named)
    await world.services.outcomes.recorder.record(ns, used)
