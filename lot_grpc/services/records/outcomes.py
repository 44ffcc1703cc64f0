"""Outcome facts and retrievals ⇄ Record."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.ports import EXPIRES_KEY, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY

SETTLED = "settled"

RETRIEVAL_LIFE = 7 * 24 * 3600 * 1_000_000
"""How long a retrieval is kept, in microseconds."""


@dataclass(frozen=True, slots=True)
class OutcomeFact:
    """One entry of the log. ``duration`` in seconds, ``create_time`` in microseconds."""

    namespace: str
    outcome_id: str
    pattern_id: str
    outcome: Outcome
    create_time: int
    reward: float | None = None
    duration: float | None = None
    query: str = ""
    retrieval_id: str = ""
    note: str = ""
    repeat: bool = False
    """Made by a repeated save, not by a use."""

    @property
    def point(self) -> str:
        """Where it lies."""
        return point_id(self.namespace, "outcome", self.outcome_id, self.pattern_id)


def outcome_record(fact: OutcomeFact, sort_key: int) -> Record:
    """A fact that no aggregate has taken in yet."""
    payload: Payload = {
        "outcome_id": fact.outcome_id,
        "pattern_id": fact.pattern_id,
        "outcome": fact.outcome.value,
        "create_time": fact.create_time,
        SETTLED: False,
        SORT_KEY: sort_key,
    }
    optional = {
        "reward": fact.reward,
        "duration": fact.duration,
        "query": fact.query or None,
        "retrieval_id": fact.retrieval_id or None,
        "note": fact.note or None,
        "repeat": fact.repeat or None,
    }
    payload.update({key: value for key, value in optional.items() if value is not None})
    return Record(fact.point, fact.namespace, payload)


def outcome_from_record(record: Record) -> OutcomeFact:
    """The fact of a record."""
    payload = record.payload
    return OutcomeFact(
        namespace=record.namespace,
        outcome_id=payload["outcome_id"],
        pattern_id=payload["pattern_id"],
        outcome=Outcome(payload["outcome"]),
        create_time=payload["create_time"],
        reward=payload.get("reward"),
        duration=payload.get("duration"),
        query=payload.get("query", ""),
        retrieval_id=payload.get("retrieval_id", ""),
        note=payload.get("note", ""),
        repeat=payload.get("repeat", False),
    )


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was asked and what was answered. ``create_time`` in microseconds."""

    namespace: str
    retrieval_id: str
    query: str
    vector: Sequence[float]
    hit_ids: tuple[str, ...]
    create_time: int

    @property
    def point(self) -> str:
        """Where it lies."""
        return retrieval_point(self.namespace, self.retrieval_id)


def retrieval_point(namespace: str, retrieval_id: str) -> str:
    """Where a retrieval lies."""
    return point_id(namespace, "retrieval", retrieval_id)


def retrieval_record(retrieval: Retrieval) -> Record:
    """A retrieval, kept for its life. The vector is base64 of float32, as it is never searched."""
    return Record(
        retrieval.point,
        retrieval.namespace,
        {
            "retrieval_id": retrieval.retrieval_id,
            "query": retrieval.query,
            "vector": b64encode(np.asarray(retrieval.vector, np.float32).tobytes()).decode(),
            "hit_ids": list(retrieval.hit_ids),
            "create_time": retrieval.create_time,
            EXPIRES_KEY: retrieval.create_time + RETRIEVAL_LIFE,
        },
    )


def retrieval_from_record(record: Record) -> Retrieval:
    """The retrieval of a record."""
    payload = record.payload
    return Retrieval(
        record.namespace,
        payload["retrieval_id"],
        payload["query"],
        np.frombuffer(b64decode(payload["vector"]), np.float32).tolist(),
        tuple(payload["hit_ids"]),
        payload["create_time"],
    )
