"""Retrieval ⇄ Record."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef, point_id
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.retrieval import (
    Retrieval,
    RetrievalFilter,
    RetrievalMethod,
    RetrievalOptions,
    RetrievedItem,
)
from lot_grpc.ports import EXPIRES_KEY, Condition, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec, after, any_of, before, equals

SHOWN: Final = "shown"
"""What it showed: each kind, and each record as ``kind/id``."""
HOLDOUT: Final = "holdout"
PRINCIPAL: Final = "principal"
VECTOR, EPOCH = "vector", "epoch"
"""Of this store's model only."""

_OPTIONS = FieldCodec(RetrievalOptions)


def retrieval_point(namespace: str, retrieval_id: str) -> str:
    """The point id of a retrieval."""
    return point_id(namespace, "retrieval", retrieval_id)


def retrieval_record(retrieval: Retrieval) -> Record:
    """Encode a retrieval, with its expiry.

    The vector, never searched, is base64 of float32, and the items are one text: a store takes
    longer to write many small values.
    """
    payload = {
        "retrieval_id": retrieval.retrieval_id,
        "method": retrieval.method.value,
        "query": retrieval.query,
        VECTOR: b64encode(np.asarray(retrieval.vector, np.float32).tobytes()).decode(),
        "items": json.dumps([_item(one) for one in retrieval.items], separators=(",", ":")),
        SHOWN: shown_keys(retrieval.items),
        "create_time": retrieval.create_time,
        SORT_KEY: retrieval.create_time,
        EXPIRES_KEY: retrieval.expire_time,
        **_OPTIONS.write(retrieval.options),
    }
    if retrieval.principal:
        payload[PRINCIPAL] = retrieval.principal
    if retrieval.epoch:
        payload[EPOCH] = retrieval.epoch
    point = retrieval_point(retrieval.namespace, retrieval.retrieval_id)
    return Record(point, retrieval.namespace, payload)


def retrieval_from_record(record: Record) -> Retrieval:
    """Decode the retrieval of a record."""
    payload = record.payload
    return Retrieval(
        namespace=record.namespace,
        retrieval_id=payload["retrieval_id"],
        method=RetrievalMethod(payload["method"]),
        query=payload["query"],
        vector=np.frombuffer(b64decode(payload.get(VECTOR, "")), np.float32).tolist(),
        items=[_read_item(one) for one in json.loads(payload["items"])],
        create_time=payload["create_time"],
        expire_time=payload[EXPIRES_KEY],
        options=_OPTIONS.read(payload),
        principal=payload.get(PRINCIPAL, ""),
        epoch=payload.get(EPOCH, 0),
    )


SUMMARY: Final = ("retrieval_id", "method", SHOWN, HOLDOUT, "create_time", EXPIRES_KEY)
"""The keys that ``retrieval_summary`` reads."""


def retrieval_summary(record: Record) -> Retrieval:
    """What a retrieval showed, by kind and id, and whether it was held out; nothing else of it.

    Decoding all of one that showed hundreds of records takes 7 ms.
    """
    payload = record.payload
    shown = [one.split("/", 1) for one in payload.get(SHOWN, ()) if "/" in one]
    return Retrieval(
        namespace=record.namespace,
        retrieval_id=payload["retrieval_id"],
        method=RetrievalMethod(payload["method"]),
        query="",
        vector=(),
        items=[RetrievedItem(ResourceRef(kind, resource_id)) for kind, resource_id in shown],
        create_time=payload["create_time"],
        expire_time=payload[EXPIRES_KEY],
        options=RetrievalOptions(holdout=payload.get(HOLDOUT)),
    )


def shown_keys(items: Sequence[RetrievedItem]) -> list[str]:
    """The values of ``SHOWN``."""
    resources = [one.resource for one in items]
    kinds = dict.fromkeys(str(one.kind) for one in resources)
    return [*kinds, *(f"{one.kind}/{one.id}" for one in resources)]


def retrieval_conditions(narrowed: RetrievalFilter) -> list[Condition]:
    """A filter as conditions, except for outcomes, which are records of their own."""
    shown: tuple[str, ...] = narrowed.item_kinds
    if narrowed.item_id:
        shown = tuple(f"{kind}/{narrowed.item_id}" for kind in shown or ResourceKind)
    return [
        *any_of("method", narrowed.methods),
        *any_of(SHOWN, shown),
        *after(SORT_KEY, narrowed.created_after),
        *before(SORT_KEY, narrowed.created_before),
        *equals(HOLDOUT, narrowed.holdout),
        *equals(PRINCIPAL, narrowed.principal or None),
    ]


def _item(one: RetrievedItem) -> list[Any]:
    parts = [(part.name, part.value, part.weight) for part in one.score_parts]
    match = one.match_probability
    resource = one.resource
    return [resource.kind, resource.id, one.version, one.score, one.similarity, match, parts]


def _read_item(stored: Any) -> RetrievedItem:
    kind, resource_id, version, score, similarity, match, parts = stored
    return RetrievedItem(
        ResourceRef(kind, resource_id),
        tuple(version),
        score,
        similarity,
        () if match is None else (match,),
        tuple(ScorePart(*part) for part in parts),
    )
