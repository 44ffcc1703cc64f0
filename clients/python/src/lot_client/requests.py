"""What both clients make requests with."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from lot_client.fields import SavePatternItemLike
from lot_client.messages import M, build
from lot_client.pb.lot.v1 import pattern_service_pb2 as patterns
from lot_client.recall import PatternRecall

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    # A server that restarts is found again within a second or two, not gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A server whose machine is gone is noticed within a minute of an open call.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
)
PAGE_SIZE = 100


def new_request_id() -> str:
    """A name for a write, so that it may be repeated."""
    return uuid.uuid4().hex


class Requests:
    """Makes the requests of one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def read(self, kind: type[M], **fields: Any) -> M:
        """A request that changes nothing, or whose change has no request id."""
        return build(kind, {"namespace": self.namespace, **fields})

    def write(self, kind: type[M], **fields: Any) -> M:
        """A request that may be repeated, since it has a request id."""
        return self.read(kind, **fields | {"request_id": fields["request_id"] or new_request_id()})

    def save_items(self, items: Iterable[SavePatternItemLike]) -> patterns.BatchSavePatternsRequest:
        """The request of a batch, each item with a request id of its own."""
        request = patterns.BatchSavePatternsRequest(namespace=self.namespace)
        for item in items:
            if isinstance(item, patterns.SavePatternItem):
                request.items.append(item)
            else:
                request.items.append(build(patterns.SavePatternItem, item))
            if not request.items[-1].request_id:
                request.items[-1].request_id = new_request_id()
        return request

    def update(
        self, pattern_id: str, etag: str, edits: Mapping[str, Any]
    ) -> patterns.UpdatePatternRequest:
        """The request that sets just the fields named in ``edits``."""
        mask = {"expiration" if name in {"ttl", "expire_time"} else name for name in edits}
        return self.read(
            patterns.UpdatePatternRequest,
            pattern=edits,
            pattern_id=pattern_id,
            update_mask=sorted(mask),
            etag=etag,
        )

    def outcome(
        self,
        pattern_ids: str | Iterable[str],
        recall: PatternRecall | None,
        query: str | None,
        retrieval_id: str | None,
        **fields: Any,
    ) -> patterns.RecordOutcomeRequest:
        """The request for an outcome. Both retrieval id and query go along where known."""
        return self.write(
            patterns.RecordOutcomeRequest,
            pattern_ids=[pattern_ids] if isinstance(pattern_ids, str) else pattern_ids,
            query=query or (recall.query if recall else None),
            retrieval_id=retrieval_id or (recall.retrieval_id if recall else None),
            **fields,
        )
