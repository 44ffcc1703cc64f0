"""Changes and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lot_grpc.domain.change import ChangeType, Noun
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import noun_pb2
from lot_grpc.server.convert.decisions import decision_to_pb
from lot_grpc.server.convert.episodes import episode_to_pb
from lot_grpc.server.convert.error_solutions import error_solution_to_pb
from lot_grpc.server.convert.learning_events import learning_event_to_pb
from lot_grpc.server.convert.memories import memory_to_pb
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.server.convert.preferences import preference_to_pb
from lot_grpc.server.convert.sessions import session_to_pb
from lot_grpc.server.convert.values import EnumCodec, seconds_from_pb, time_to_pb
from lot_grpc.server.cursors import cursor_from_token, cursor_to_token
from lot_grpc.services.changes.news import ChangeEvent, PatternMatch, Watch
from lot_grpc.services.records.changes import WATCHED

TYPE = EnumCodec(pb.ChangeType.DESCRIPTOR, ChangeType, "CHANGE_TYPE_")
NOUN = EnumCodec(noun_pb2.Noun.DESCRIPTOR, Noun, "NOUN_")

_DEFAULT_HEARTBEAT = 15.0

_PAYLOADS: Mapping[Noun, Callable[[Any], Any]] = {
    Noun.MEMORY: memory_to_pb,
    Noun.PATTERN: pattern_to_pb,
    Noun.EPISODE: episode_to_pb,
    Noun.ERROR_SOLUTION: error_solution_to_pb,
    Noun.PREFERENCE: preference_to_pb,
    Noun.LEARNING_EVENT: learning_event_to_pb,
    Noun.DECISION: decision_to_pb,
    Noun.SESSION: session_to_pb,
}
"""What makes the payload of a noun; its field is named like the noun."""


def watch_from_pb(request: pb.WatchChangesRequest) -> Watch:
    """What is to be watched. Raises for nouns that cannot be."""
    asked = NOUN.all_from_pb(request.nouns)
    for place, (number, noun) in enumerate(zip(request.nouns, asked, strict=True)):
        if noun not in WATCHED:
            raise invalid(
                f"nouns[{place}]",
                "noun.watched",
                f"{noun_pb2.Noun.Name(number)} cannot be watched; these can: "
                + ", ".join(noun_pb2.Noun.Name(NOUN.to_pb(noun)) for noun in WATCHED),
            )
    return Watch(
        namespace=namespace_or_default(request.namespace),
        nouns=tuple(noun for noun in WATCHED if not asked or noun in asked),
        types=frozenset(TYPE.all_from_pb(request.types)),
        cursor=cursor_from_token(request.after_cursor),
        from_start=request.from_start,
        payload=not request.omit_payload,
        heartbeat=seconds_from_pb(request, "heartbeat_interval") or _DEFAULT_HEARTBEAT,
    )


def change_event_to_pb(change: ChangeEvent) -> pb.ChangeEvent:
    """A change as it is told."""
    message = pb.ChangeEvent(
        cursor="" if change.cursor is None else cursor_to_token(change.cursor),
        type=TYPE.to_pb(change.type),
        noun=NOUN.to_pb(change.noun),
        id=change.id,
        time=time_to_pb(change.time),
        namespace=change.namespace,
    )
    if isinstance(change.thing, PatternMatch):
        message.pattern_match.CopyFrom(_match_to_pb(change.thing))
    elif change.thing is not None:
        getattr(message, change.noun.value).CopyFrom(_PAYLOADS[change.noun](change.thing))
    return message


def _match_to_pb(match: PatternMatch) -> pb.PatternMatch:
    return pb.PatternMatch(
        pattern_id=match.pattern_id,
        query=match.query,
        similarity=match.similarity,
        retrieval_id=match.retrieval_id,
    )
