"""What is done with sessions."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.errors import SessionNotFoundError
from lot_grpc.domain.session import Session, SessionMessage
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import Appended, MessageDraft
from tests.services.world import NS, World

SECOND = 1_000_000


async def append(
    world: World, content: str = "hello", session_id: str = "s", **named: Any
) -> Appended:
    terms = Terms(named.pop("max_messages", 0), named.pop("ttl", None))
    request_id = named.pop("request_id", "")
    message = SessionMessage("user", content, **named)
    draft = MessageDraft(session_id, message, terms, request_id)
    return await world.services.sessions.messages.append(NS, draft)


async def put(
    world: World, key: str, value: bytes = b"v", session_id: str = "s", ttl: int | None = None
) -> int:
    return await world.services.sessions.values.put(NS, session_id, key, value, ttl)


async def got(world: World, session_id: str = "s", limit: int = 0) -> Session:
    return await world.services.sessions.sessions.get(NS, session_id, limit)


def contents(session: Session) -> list[str]:
    return [one.content for one in session.messages]


def sequences(session: Session) -> list[int]:
    return [one.sequence for one in session.messages]


async def absent(world: World, session_id: str = "s") -> bool:
    """Whether it is absent everywhere."""
    services = world.services
    for call in (
        services.sessions.sessions.get(NS, session_id),
        services.sessions.values.get(NS, session_id, "k"),
        services.sessions.sessions.clear(NS, session_id),
        services.sessions.sessions.clear(NS, session_id, ["k"]),
        services.sessions.sessions.clear(NS, session_id, clear_messages=True),
    ):
        try:
            await call
        except SessionNotFoundError:
            continue
        return False
    return True
