"""Helpers shared by the RPCs of several services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import LimitExceededError, LotError, NotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.server.answers import Page
from lot_grpc.server.limits import Limits
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services import paging

DEFAULT_PAGE = 10


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """Constant data about the server. ``start_time`` in microseconds since 1970."""

    version: str
    capabilities: tuple[str, ...]
    limits: Limits
    max_batch_items: int
    min_free_bytes: int
    start_time: int


T = TypeVar("T")
D = TypeVar("D")
S = TypeVar("S")
R = TypeVar("R", bound=Message)


def namespace_of(request: Any) -> str:
    """The namespace of a request."""
    return namespace_or_default(request.namespace)


async def was_deleted(deleting: Awaitable[Any], request: Any) -> bool:
    """Whether a delete found its target. Raises NotFoundError, unless ``allow_missing``."""
    try:
        await deleting
    except NotFoundError:
        if not request.allow_missing:
            raise
        return False
    return True


async def read_page(
    request: Any,
    response: R,
    to_pb: Callable[[T], Message],
    read: Callable[..., Awaitable[paging.Page[Any, paging.Position]]],
    *narrowed: Any,
) -> R:
    """A page of a list, limited by size. ``read`` takes ``narrowed`` after the namespace."""
    page = Page(request, response, to_pb)
    found = await read(
        namespace_of(request),
        *narrowed,
        request.page_size or DEFAULT_PAGE,
        position_from_token(request, request.page_token),
        page.fits,
    )
    return page.ending(position_to_token(request, found.next))


async def carry_out_batch(
    items: Collection[Any],
    most: int,
    draft_of: Callable[[Any], D],
    carry_out: Callable[[Sequence[D]], Awaitable[Sequence[S | LotError]]],
) -> list[S | LotError]:
    """The result of each item of a batch: one that is refused does not stop the others."""
    if len(items) > most:
        raise LimitExceededError(
            f"at most {counted(most, 'item')} per batch on this server; split it",
            limit=most,
            given=len(items),
        )
    refused: dict[int, LotError] = {}
    drafts: list[D] = []
    for number, item in enumerate(items):
        try:
            drafts.append(draft_of(item))
        except LotError as error:
            refused[number] = error
        await asyncio.sleep(0)  # a batch of large items must not block other calls
    done = iter(await carry_out(drafts))
    return [refused.get(number) or next(done) for number in range(len(items))]
