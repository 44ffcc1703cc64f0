"""Recording outcomes of what was recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import LotError, NotInRetrievalError, RetrievalNotFoundError
from lot_grpc.domain.ids import ResourceRef, new_id
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.recorded_outcome import RecordedOutcome, learns_by_query
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.retrieval import Retrieval
from lot_grpc.kernel.idempotency import CREATE_TIMES, IdempotencyKey, create_times
from lot_grpc.ports import Record
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.runtime import Runtime
from lot_grpc.telemetry.spans import annotate

_METHOD = "RecordOutcome"
_NAME_USED = "name what was used, and send query instead"


@dataclass(frozen=True, slots=True)
class OutcomeDraft:
    """An outcome to record. ``duration`` in seconds, ``reward`` in [-1, 1].

    The ids name what was used. Without any, nothing of the retrieval was used.
    """

    pattern_ids: tuple[str, ...]
    outcome: Outcome
    retrieval_id: str = ""
    query: str = ""
    reward: float | None = None
    duration: float | None = None
    note: str = ""
    request_id: str = ""
    memory_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    error_solution_ids: tuple[str, ...] = ()

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was used, after the outcome, and the id of the log entry."""

    outcome_id: str
    patterns: list[Pattern] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    error_solutions: list[ErrorSolution] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _UsedOn:
    """The query that the outcome is learned for, with its vector if known.

    ``retrieval``: what must have shown all that was used, if the outcome names it.
    """

    query: str = ""
    vector: Sequence[float] | None = None
    retrieval: Retrieval | None = None


class CountedResources:
    """The resources of the kinds whose outcomes are counted, by point."""

    def __init__(self, resources: ResourcesByKind) -> None:
        self._resources = resources
        self._counted = resources.registry.counted

    def named(self, draft: OutcomeDraft) -> list[ResourceRef]:
        """What a draft names as used, in the order of its ids."""
        return [
            ResourceRef(kind, named)
            for kind, spec in self._counted.items()
            for named in getattr(draft, f"{spec.id_key}s")
        ]

    async def records(self, namespace: str, resources: Sequence[ResourceRef]) -> dict[str, Record]:
        """The records of existing ones."""
        found: dict[str, Record] = {}
        for kind in dict.fromkeys(one.kind for one in resources):
            ids = [one.id for one in resources if one.kind == kind]
            records = await self._resources.of(kind).records(namespace, ids)
            found |= {record.id: record for record in records.values()}
        return found

    def missing(self, namespace: str, resource: ResourceRef, hint: str = "") -> LotError:
        """The error for one that does not exist."""
        return self._counted[resource.kind].missing(namespace, resource.id, hint)

    async def recorded(
        self,
        outcome_id: str,
        namespace: str,
        resources: Sequence[ResourceRef],
        records: Mapping[str, Record],
    ) -> Recorded:
        """Those that still exist, in the given order."""
        read: dict[str, list[Any]] = {}
        for one in resources:
            if record := records.get(one.point(namespace)):
                name = self._counted[one.kind].collection.name
                read.setdefault(name, []).append(await self._resources.of(one.kind).read(record))
        return Recorded(outcome_id, **read)


class OutcomeRecorder:
    """Records outcomes."""

    def __init__(
        self,
        runtime: Runtime,
        counting: OutcomeCounter,
        counted: CountedResources,
        vectors: QueryVectors,
    ) -> None:
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._counting = counting
        self._counted = counted
        self._retrievals = runtime.retrievals
        self._vectors = vectors

    async def record(self, namespace: str, draft: OutcomeDraft, method: str = _METHOD) -> Recorded:
        """Count an outcome once for each resource that was used.

        ``method``: the call, to which the request id belongs. Raises the NotFoundError of a kind,
        RetrievalNotFoundError, NotInRetrievalError, RequestIdReusedError, and then counts nothing.
        """
        key = _key(namespace, draft, method)
        resources = self._counted.named(draft)
        entry = await self._idempotency.find(key)
        again = entry is not None
        if entry is None:
            used_on = await self._used_on(namespace, draft, resources, required=True)
            present = await self._require(namespace, resources, used_on.retrieval)
            key = replace(key, plan={**key.plan, CREATE_TIMES: create_times(present)})
            entry = await self._idempotency.begin(key)
        else:
            present = await self._counted.records(namespace, resources)
            used_on = _UsedOn()
            if entry.result is None:
                used_on = await self._used_on(namespace, draft, resources, required=False)
        outcome_id: str = entry.plan["outcome_id"]
        annotate("lot.outcome", draft.outcome)
        annotate("lot.outcome.id", outcome_id)
        if draft.retrieval_id:
            annotate("lot.retrieval.id", draft.retrieval_id)
        present = entry.about(present)
        if entry.result is None:
            now = self._time.now()
            there = [one for one in resources if one.point(namespace) in present]
            if not resources:
                await self._retrievals.flush()  # without the retrieval it would say nothing
                there = [ResourceRef(ResourceKind.RETRIEVAL, draft.retrieval_id)]
            recorded_outcomes = [
                RecordedOutcome(
                    namespace,
                    outcome_id,
                    one,
                    draft.outcome,
                    now,
                    reward=draft.reward,
                    duration=draft.duration,
                    query=used_on.query,
                    retrieval_id=draft.retrieval_id,
                    note=draft.note,
                )
                for one in there
            ]
            present = await self._counting.count(
                recorded_outcomes, present, used_on.vector, again=again
            )
            await self._idempotency.finish(entry, {})
        return await self._counted.recorded(outcome_id, namespace, resources, present)

    async def _require(
        self, namespace: str, resources: Sequence[ResourceRef], retrieval: Retrieval | None
    ) -> dict[str, Record]:
        """The records of what was used, which must exist and have been shown."""
        present = await self._counted.records(namespace, resources)
        if retrieval is not None:
            created = create_times(present)
            others = [
                one.id
                for one in resources
                if not retrieval.showed(one, created.get(one.point(namespace)))
            ]
            if others:
                raise NotInRetrievalError(retrieval.retrieval_id, others)
        for one in resources:
            if one.point(namespace) not in present:
                raise self._counted.missing(namespace, one, "nothing was counted")
        return present

    async def _used_on(
        self,
        namespace: str,
        draft: OutcomeDraft,
        resources: Sequence[ResourceRef],
        *,
        required: bool,
    ) -> _UsedOn:
        """The query that it is learned for. A retry does without an unknown retrieval.

        Called before anything is written, so that nothing is if the vector cannot be computed.
        """
        query, retrieval = draft.query, None
        if draft.retrieval_id:
            retrieval = await self._retrievals.find(namespace, draft.retrieval_id)
            if retrieval is None and required and not (query and resources):
                hint = "send query as well, or instead" if resources else _NAME_USED
                raise RetrievalNotFoundError(namespace, draft.retrieval_id, hint)
            query = query or (retrieval.query if retrieval else "")
        if not query or not any(learns_by_query(one.kind) for one in resources):
            return _UsedOn(query, retrieval=retrieval)
        vector = await self._vectors.of(query, retrieval)
        if vector is None:
            return _UsedOn(retrieval=retrieval)
        return _UsedOn(query, vector, retrieval)


def _key(namespace: str, draft: OutcomeDraft, method: str) -> IdempotencyKey:
    content = draft.hash() if draft.request_id else ""  # else it is not compared
    return IdempotencyKey(namespace, method, draft.request_id, content, {"outcome_id": new_id("o")})
