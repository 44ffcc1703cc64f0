"""The innermost handlers: one runs a servicer's method, one answers missing methods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import grpc.aio

from lot_grpc.domain.errors import (
    LimitExceededError,
    OverloadedError,
    UnimplementedError,
)
from lot_grpc.server.answers import ANSWER_BYTES, Shape, answer_bytes
from lot_grpc.server.call import Call, Context, Handler, Method


def serve(
    method: Method,
    behaviour: Callable[[Any, Context], Any],
    max_bytes: int = 0,
    send_seconds: float | None = None,
) -> Handler:
    """The innermost handler: runs the servicer's method and serializes its response.

    A response is made to fit ``ANSWER_BYTES``, or ``max_bytes`` if lower (0: no limit). Reading a
    single item larger than that is refused, and a response stream is ended if its client does not
    take a message within ``send_seconds``. The result of a write is always sent.
    """
    kind = method.response_type
    bound = 0 if method.writes else max_bytes
    shape = Shape(method.request_type, kind)
    fitting = min(ANSWER_BYTES, max_bytes or ANSWER_BYTES)
    patience = None if method.writes else send_seconds

    def add_notices(call: Call, response: Any) -> None:
        if call.notices:
            response.notices.extend(call.notices)
            call.notices.clear()

    def serialize(response: Any) -> bytes:
        if not isinstance(response, kind):  # upb would silently serialize any message
            raise TypeError(f"{method.name} answered {type(response).__name__}")
        raw = response.SerializeToString()
        if bound and len(raw) > bound:
            raise LimitExceededError(
                f"the response has {len(raw):,} bytes, the limit is {bound:,}; request less at "
                f"once ({shape.narrowing})",
                limit=bound,
                given=len(raw),
            )
        return raw

    if not method.server_streaming:

        async def answer(call: Call) -> bytes:
            answer_bytes.set(fitting)
            mask = shape.mask(call.request)
            response = await behaviour(call.request, call.context)
            if isinstance(response, kind):
                add_notices(call, response)
                shape.fit(response, mask, fitting)
            return serialize(response)

        return answer

    async def answers(call: Call) -> None:
        write = call.context.write
        async with aclosing(behaviour(call.request, call.context)) as responses:
            begun = False
            async for response in responses:
                if call.abandoned:
                    raise asyncio.CancelledError
                add_notices(call, response)
                raw = serialize(response)
                try:
                    if not begun:
                        begun = True
                        await _send_headers(call.context)
                    if patience is None:
                        await write(raw)
                    else:
                        async with asyncio.timeout(patience):
                            await write(raw)
                    call.bytes_sent += len(raw)
                    call.messages_sent += 1
                except grpc.aio.AbortError:
                    raise
                except TimeoutError:
                    raise OverloadedError(
                        f"the client did not read a message within {patience:g} s; read faster, "
                        "and reopen the stream after the last message you received",
                        limit=f"{patience:g} s",
                        limit_seconds=f"{patience:g}",
                    ) from None
                except Exception as error:  # sending bytes only fails if the client is gone
                    raise asyncio.CancelledError from error

    return answers


async def _send_headers(context: Context) -> None:
    """Send headers separately from the first message: they do not wait for a reader.

    While gRPC is sending both, it cannot send a status, and a call ended then has no reason.
    """
    sending = asyncio.ensure_future(context.send_initial_metadata(()))
    try:
        await asyncio.shield(sending)
    except asyncio.CancelledError:
        await sending
        raise


def not_implemented(name: str) -> Handler:
    """The handler of an RPC that this version does not implement."""

    async def refuse(call: Call) -> Any:
        raise UnimplementedError(name)

    return refuse
