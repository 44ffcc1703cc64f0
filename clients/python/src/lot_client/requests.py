"""Builds requests for both clients."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from lot_client.errors import LotError
from lot_client.messages import M, build
from lot_client.pb.lot.v1 import admin_service_pb2 as admin
from lot_client.pb.lot.v1 import episode_service_pb2 as episodes
from lot_client.pb.lot.v1 import learning_service_pb2 as learning
from lot_client.pb.lot.v1 import memory_service_pb2 as memories
from lot_client.pb.lot.v1 import pattern_service_pb2 as patterns
from lot_client.recall import Answer, PatternRecall

R = TypeVar("R", bound=Message)

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    # Reconnect to a restarted server within a second or two, not gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # An open call notices within a minute that the server's machine is down.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
)
PAGE_SIZE = 100
_READS = {
    method.input_type.full_name
    for module in (admin, episodes, learning, memories, patterns)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
}
"""Requests of the calls that change nothing; no two calls share a type of request."""


def identified(request: R, request_id: str = "") -> tuple[R, str]:
    """The request with its missing ids filled in, so that it can be repeated safely, and the id.

    A copy if any is missing. ``request_id``: the id to use; empty: a new one. The n-th item of a
    batch gets ``request_id-n``.
    """
    request_id = request_id or uuid.uuid4().hex
    if all(each.request_id for each in _writes(request)):
        return request, request_id
    made = type(request)()
    made.CopyFrom(request)
    for number, each in enumerate(_writes(made)):
        own = request_id if each is made else f"{request_id}-{number}"
        each.request_id = each.request_id or own
    return made, request_id


def is_safe(request: Any) -> bool:
    """Whether a call may be repeated: it only reads, or has a request id for all it writes."""
    if request.DESCRIPTOR.full_name in _READS:
        return True
    takes_ids = _takes_ids(request.DESCRIPTOR) is not None
    return takes_ids and all(each.request_id for each in _writes(request))


def failed(request: Any, error: grpc.RpcError) -> LotError:
    """The error of the call with this request."""
    failure = LotError.from_rpc_error(error)
    failure.method = request.DESCRIPTOR.name.removesuffix("Request")
    failure.request_id = getattr(request, "request_id", "")
    failure.__cause__ = error
    return failure


def _writes(request: Any) -> list[Any]:
    """What has a request id: the request, or its items."""
    field = _takes_ids(request.DESCRIPTOR)
    return [] if field is None else [request] if field == "request_id" else getattr(request, field)


@cache
def _takes_ids(request: Descriptor) -> str | None:
    """`request_id`, or the field with items that have one; None: it takes none."""
    if "request_id" in request.fields_by_name:
        return "request_id"
    for field in request.fields:
        if field.message_type is not None and "request_id" in field.message_type.fields_by_name:
            return str(field.name)
    return None


class Requests:
    """Makes the requests of one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def make(self, kind: type[M], **fields: Any) -> M:
        """A request of this type."""
        return build(kind, {"namespace": self.namespace, **fields})

    def update(
        self, pattern_id: str, etag: str, edits: Mapping[str, Any]
    ) -> patterns.UpdatePatternRequest:
        """The request that sets just the fields named in ``edits``."""
        mask = {"expiration" if name in {"ttl", "expire_time"} else name for name in edits}
        return self.make(
            patterns.UpdatePatternRequest,
            pattern=edits,
            pattern_id=pattern_id,
            update_mask=sorted(mask),
            etag=etag,
        )

    def outcome(
        self,
        pattern_ids: str | Iterable[str],
        recall: Answer | None,
        query: str | None,
        retrieval_id: str | None,
        **fields: Any,
    ) -> patterns.RecordOutcomeRequest:
        """The request for an outcome. Both retrieval id and query go along where known."""
        return self.make(
            patterns.RecordOutcomeRequest,
            pattern_ids=[pattern_ids] if isinstance(pattern_ids, str) else pattern_ids,
            query=query or (recall.query if isinstance(recall, PatternRecall) else None),
            retrieval_id=retrieval_id or (recall.retrieval_id if recall else None),
            **fields,
        )
