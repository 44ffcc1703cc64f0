"""The innermost handlers: what runs a method of a servicer, and what stands where there is none."""

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
    """The innermost handler: runs the servicer's method and serializes what it answers.

    An answer is made to fit ``ANSWER_BYTES``, and ``max_bytes`` if that is less (0: no bound). A
    read of something that is larger than those alone is refused, and a stream of answers of which
    one is not taken within ``send_seconds`` is ended; the outcome of a write is always sent.
    """
    kind = method.response_type
    bound = 0 if method.writes else max_bytes
    shape = Shape(method.request_type, kind)
    fitting = min(ANSWER_BYTES, max_bytes or ANSWER_BYTES)
    patience = None if method.writes else send_seconds

    def serialize(response: Any) -> bytes:
        if not isinstance(response, kind):  # upb would serialize any message without a word
            raise TypeError(f"{method.name} answered {type(response).__name__}")
        raw = response.SerializeToString()
        if bound and len(raw) > bound:
            raise LimitExceededError(
                f"the answer has {len(raw):,} bytes and at most {bound:,} are sent; "
                f"ask for fewer things at once ({shape.narrowing})",
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
                shape.fit(response, mask, fitting)
            return serialize(response)

        return answer

    async def answers(call: Call) -> None:
        write = call.context.write
        async with aclosing(behaviour(call.request, call.context)) as responses:
            async for response in responses:
                if call.abandoned:
                    raise asyncio.CancelledError
                raw = serialize(response)
                try:
                    async with asyncio.timeout(patience):
                        await write(raw)
                except grpc.aio.AbortError:
                    raise
                except TimeoutError:
                    raise OverloadedError(
                        f"a message waited {patience:g} s for its reader; read faster, and open "
                        "the stream again behind what you have",
                        limit_seconds=f"{patience:g}",
                    ) from None
                except Exception as error:  # bytes can only fail to be sent if nobody is there
                    raise asyncio.CancelledError from error

    return answers


def not_implemented(name: str) -> Handler:
    """The handler of an RPC that the contract has and this version has not."""

    async def refuse(call: Call) -> Any:
        raise UnimplementedError(
            f"{name} is not carried out by this version; see GetServerInfo.capabilities", what=name
        )

    return refuse
