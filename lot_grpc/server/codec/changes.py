"""Changes, and requests to watch them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lot_grpc.domain.change import ChangeType
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.server.codec.generic import Encoder
from lot_grpc.server.codec.resources import TO_PB
from lot_grpc.server.codec.values import (
    RESOURCE_KIND,
    EnumCodec,
    resource_kind_to_pb,
    seconds_of_duration,
    time_to_pb,
)
from lot_grpc.server.cursors import cursor_from_token, cursor_to_token, feed_of
from lot_grpc.services.changes.events import (
    ChangeBatch,
    ChangeEvent,
    ContextSuggestion,
    PatternMatch,
    WatchRequest,
)

TYPE = EnumCodec(pb.ChangeType.DESCRIPTOR, ChangeType)

_DEFAULT_HEARTBEAT = 15.0
_MESSAGE_BYTES = 2**20
"""Bytes of a message, so that a client with gRPC's default limit of 4 MiB accepts it; a single
change of a large resource may be more."""


_match_to_pb = Encoder(PatternMatch, pb.PatternMatch)
_suggestion_to_pb = Encoder(ContextSuggestion, pb.ContextSuggestion)


def watch_from_pb(request: pb.WatchChangesRequest, watched: Collection[str]) -> WatchRequest:
    """A watch request; raises for kinds that cannot be watched."""
    requested = RESOURCE_KIND.all_from_pb(request.resource_kinds)
    for place, (number, resource_kind) in enumerate(
        zip(request.resource_kinds, requested, strict=True)
    ):
        if resource_kind not in watched:
            raise invalid(
                f"resource_kinds[{place}]",
                "resource_kind.watched",
                f"{resource_kind_pb2.ResourceKind.Name(number)} cannot be watched; these can: "
                + ", ".join(
                    resource_kind_pb2.ResourceKind.Name(resource_kind_to_pb(resource_kind))
                    for resource_kind in watched
                ),
            )
    interval, namespace = request.heartbeat_interval, namespace_or_default(request.namespace)
    return WatchRequest(
        namespace=namespace,
        resource_kinds=tuple(
            resource_kind for resource_kind in watched if resource_kind in requested
        ),
        types=frozenset(TYPE.all_from_pb(request.types)),
        cursor=cursor_from_token(feed_of(namespace), request.after_cursor, watched),
        from_start=request.from_start,
        payload=not request.omit_payload,
        heartbeat=seconds_of_duration(interval, "heartbeat_interval") or _DEFAULT_HEARTBEAT,
    )


def batch_to_pb(batch: ChangeBatch, namespace: str) -> Iterator[pb.WatchChangesResponse]:
    """The changes in messages of limited size, each with the cursor after its last change."""
    feed_key = feed_of(namespace)
    message, size = pb.WatchChangesResponse(), 0
    for change in batch.changes:
        event = _event_to_pb(change, feed_key)
        if size and size + event.ByteSize() > _MESSAGE_BYTES:
            yield message
            message, size = pb.WatchChangesResponse(), 0
        message.change_events.append(event)
        message.cursor = event.cursor or cursor_to_token(feed_key, batch.cursor)
        size += event.ByteSize()
    message.cursor = cursor_to_token(feed_key, batch.cursor)
    yield message


def _event_to_pb(change: ChangeEvent, feed_key: str) -> pb.ChangeEvent:
    message = pb.ChangeEvent(
        cursor="" if change.cursor is None else cursor_to_token(feed_key, change.cursor),
        type=TYPE.to_pb(change.type),
        resource_kind=resource_kind_to_pb(change.resource_kind),
        id=change.id,
        change_time=time_to_pb(change.change_time),
        namespace=change.namespace,
    )
    if isinstance(change.thing, PatternMatch):
        message.pattern_match.CopyFrom(_match_to_pb(change.thing))
    elif isinstance(change.thing, ContextSuggestion):
        message.context_suggestion.CopyFrom(_suggestion_to_pb(change.thing))
    elif change.thing is not None and change.resource_kind is not None:
        getattr(message, change.resource_kind).CopyFrom(TO_PB[change.resource_kind](change.thing))
    return message
