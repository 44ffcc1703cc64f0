"""Retrievals and their receipts."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.retrieval import (
    Receipt,
    Retrieval,
    RetrievalFilter,
    RetrievalOutcome,
    RetrievedItem,
)
from lot_grpc.pb.lot.v1 import retrieval_pb2 as pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.outcomes import OUTCOME
from lot_grpc.server.codec.values import resource_kind_to_pb

filter_from_pb = Decoder(pb.RetrievalFilter, RetrievalFilter, path="filter")

_item_to_pb = Encoder(
    RetrievedItem,
    pb.RetrievedItem,
    rename={"resource_kind": "resource.kind", "id": "resource.id"},
    values={"resource_kind": resource_kind_to_pb},
    omit={"outcome", "version", "matches", "etag"},
)


def _items_to_pb(retrieval: Retrieval) -> list[pb.RetrievedItem]:
    messages = [_item_to_pb(one) for one in retrieval.items]
    for message, one in zip(messages, retrieval.items, strict=True):
        message.etag = one.etag_in(retrieval.namespace)
    return messages


retrieval_to_pb = Encoder(
    Retrieval,
    pb.Retrieval,
    flatten=("options",),
    values={"items": Whole(_items_to_pb)},
    omit={"outcomes", "vector", "epoch"},
)
"""Without its outcomes."""

_outcome_to_pb = Encoder(
    RetrievalOutcome,
    pb.RetrievalOutcome,
    values={
        "used": lambda used: [
            pb.UsedItem(resource_kind=resource_kind_to_pb(one.kind), id=one.id) for one in used
        ]
    },
)


_MOST_OUTCOMES: Final = 50
"""In a message, the latest. Each may take 30 KiB, and any client must accept all of them."""


def receipt_to_pb(receipt: Receipt) -> pb.Retrieval:
    """A retrieval with its outcomes."""
    message = retrieval_to_pb(receipt.retrieval)
    message.outcomes.extend(map(_outcome_to_pb, receipt.outcomes[-_MOST_OUTCOMES:]))
    used = receipt.outcome_by_resource
    for one, item in zip(message.items, receipt.retrieval.items, strict=True):
        one.outcome = OUTCOME.to_pb(used.get(item.resource))
    return message
