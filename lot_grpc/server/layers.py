"""The layers that every call passes through, in order, from the outside in.

The layers are wrapped around each method once, when it is registered, and not by
``grpc.aio.ServerInterceptor``: that is consulted for every call, makes a new handler each time, and
sees the request only after gRPC has parsed it. So handlers take and return raw bytes, and none of
our code runs outside the error boundary.

Layers are coroutines for all four kinds of RPC: the responses of a stream are written with
``context.write``, so that a cancelled call raises ``CancelledError`` at an await in each layer, and
only the innermost one holds the servicer's generator, and closes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import Message

from lot_grpc.domain.errors import (
    CallTimeoutError,
    CredentialsInvalidError,
    LotError,
    RateLimitedError,
)
from lot_grpc.server.access import authentication, authorization
from lot_grpc.server.audit import audit, audit_open
from lot_grpc.server.call import CALL_ID_KEY, Call, Context, Handler, Method, current_call_id
from lot_grpc.server.calllog import CallLog, write
from lot_grpc.server.checking import checker_of
from lot_grpc.server.observation import metering, tracing
from lot_grpc.server.redaction import redaction
from lot_grpc.server.server_state import Layer, ServerState
from lot_grpc.server.status import DETAILS_KEY, TABLE, Status, internal_status, to_status
from lot_grpc.server.streams import Requests
from lot_grpc.work import begin_work

# --- access log -----------------------------------------------------------------------------------


def access_log(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Logs one line per call, whatever its outcome, without affecting it."""
    log = state.log
    if log is None:
        return handler

    async def logged(call: Call) -> Any:
        start = time.perf_counter()
        try:
            return await handler(call)
        finally:
            write(log, call, start)

    return logged


# --- error boundary -------------------------------------------------------------------------------


def error_boundary(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Turns any exception into a status with a reason; nothing else reaches the caller."""

    async def bounded(call: Call) -> Any:
        current_call_id.set(call.id)
        call.begun = begin_work()
        call.context.set_trailing_metadata(((CALL_ID_KEY, call.id),))
        try:
            return await handler(call)
        except grpc.aio.AbortError:  # the status is sent: it must reach gRPC unchanged
            call.code = _name(call.context.code())
            raise
        except asyncio.CancelledError:
            if call.stopped is None:
                call.code = "DEADLINE_EXCEEDED" if _overdue(call.context) else "CANCELLED"
                raise
            status = _reported(call, call.stopped)
        except Exception as error:  # noqa: BLE001 - this is the boundary
            status = _reported(call, error)
        return await _abort(call, status)

    return bounded


def _reported(call: Call, error: Exception) -> Status:
    """The status for an error, stored in the call for the log."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a task group with one failure
    if isinstance(error, LotError) and error.reason in TABLE:
        status = to_status(error)
        call.reason = error.reason
        if isinstance(error, CredentialsInvalidError):
            call.why = error.why
        if error.reason == "INTERNAL" or status.code in _OURS:
            call.error = error
    else:
        status = internal_status(call.id)
        call.reason = "INTERNAL"
        call.error = error
    call.code = _CODES[status.code].name
    return status


async def _abort(call: Call, status: Status) -> Any:
    await call.context.abort(
        _CODES[status.code],
        status.message,
        ((DETAILS_KEY, status.SerializeToString()), (CALL_ID_KEY, call.id)),
    )


_OURS: Final = {code.value[0] for code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE)}
"""Codes of server-side failures; the operator should see their cause."""

_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


def _name(code: Any) -> str:
    """The name of a code, which may be a number or the enum."""
    return _CODES[code].name if isinstance(code, int) else str(getattr(code, "name", "UNKNOWN"))


def _overdue(context: Context) -> bool:
    remaining: float | None = context.time_remaining()
    return remaining is not None and remaining <= 0


# --- admission ------------------------------------------------------------------------------------


def admission(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Refuses calls over the limits, or during a drain, before anything is spent on them."""
    inflight, rate_limiter, refusals = state.inflight, state.rate_limiter, state.refusals

    def enter(call: Call) -> None:
        inflight.enter(call)
        try:
            rate_limiter.take(call.principal)
        except BaseException:
            inflight.leave(call)
            raise

    async def admitted(call: Call) -> Any:
        try:
            enter(call)
        except RateLimitedError:
            if not await refusals.hold_back(call.principal):
                raise
            enter(call)
        try:
            return await handler(call)
        finally:
            inflight.leave(call)

    return admitted


# --- requests -------------------------------------------------------------------------------------


def single_request(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Reads the request of a unary call, within the memory limits for requests."""
    if method.client_streaming:
        return handler
    incoming = state.inflight.incoming

    async def received(call: Call) -> Any:
        call.request = await incoming.receive(call.context, method.request_type)
        call.bytes_received = size = len(call.request)
        call.messages_received = 1
        state.inflight.bytes.arrived(call.peer, size)
        try:
            return await handler(call)
        finally:
            call.when_over(lambda: incoming.release(size))

    return received


def checked_requests(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Parses and checks a unary request at once, and streamed ones as the servicer reads them."""
    request_type = method.request_type
    if method.client_streaming:
        arriving, rate_limiter = state.inflight.bytes, state.rate_limiter

        async def streaming(call: Call) -> Any:
            check = checker_of(request_type)

            def counted(raw: bytes) -> Message:
                arriving.arrived(call.peer, len(raw))
                call.bytes_received += len(raw)
                call.messages_received += 1
                return check(raw)

            requests = Requests(call.context, counted, partial(rate_limiter.delay, call.principal))
            call.request = call.reader = requests
            try:
                return await handler(call)
            finally:
                requests.close()

        return streaming

    named = "namespace" in request_type.DESCRIPTOR.fields_by_name

    async def checked(call: Call) -> Any:
        call.request = checker_of(request_type)(call.request)
        if named:
            call.namespace = call.request.namespace
        return await handler(call)

    return checked


# --- time -----------------------------------------------------------------------------------------


def time_limit(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Ends a unary call that takes too long. Streams may stay open."""
    seconds = state.limits.max_call_seconds
    if method.streaming or not seconds:
        return handler

    async def limited(call: Call) -> Any:
        try:
            async with asyncio.timeout(seconds) as limit:
                return await handler(call)
        except TimeoutError:
            if not limit.expired():
                raise
            done = "it may have been applied" if method.writes else "nothing was changed"
            raise CallTimeoutError(
                f"{method.name} took more than {seconds:g} s; {done}", limit_seconds=seconds
            ) from None

    return limited


# --- shield ---------------------------------------------------------------------------------------


def shield(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Lets a write finish if its caller disconnects, its deadline passes or its time is up.

    A unary write runs to its end. A stream of writes finishes its current step and ends at the
    servicer's next read or response; if it reaches neither, it is cancelled after
    ``max_call_seconds``. A drain waits for both.

    A repeat of a request of the same principal that is still running joins its work if it has a
    request id, or if the first caller has disconnected and so most likely is the one repeating it.
    """
    if not method.writes:
        return handler
    seconds = state.limits.max_call_seconds
    running: dict[tuple[str, bytes], Call] = {}

    def begun(call: Call) -> asyncio.Task[Any]:
        """Start its work, or join that of an identical request."""
        if method.streaming:
            return asyncio.create_task(handler(call))
        raw = call.request.SerializeToString(deterministic=True)
        key = call.principal.id, hashlib.sha256(raw).digest()
        first = running.get(key)
        named = bool(getattr(call.request, "request_id", ""))
        if first is not None and first.work is not None and (named or first.abandoned):
            call.begun = first.begun
            call.begun.waiting += 1
            return first.work
        work = asyncio.create_task(handler(call))
        if first is None:
            running[key] = call
            work.add_done_callback(lambda _: running.pop(key))
        return work

    async def shielded(call: Call) -> Any:
        call.work = work = begun(call)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.done():
                left = time.perf_counter()
                work.add_done_callback(lambda _: _finished_late(state.log, call, work, left))
                call.abandoned = True  # its reader is closed by an outer layer
                call.begun.waiting -= 1
                if method.streaming and seconds:
                    asyncio.get_running_loop().call_later(seconds, work.cancel)
            raise

    return shielded


def _finished_late(log: CallLog | None, call: Call, work: asyncio.Task[Any], left: float) -> None:
    """Note the outcome of a write whose caller has disconnected, and log it."""
    call.code, call.reason, call.error = "OK", "", None
    if work.cancelled():
        call.code = "CANCELLED"
    elif isinstance(error := work.exception(), Exception):
        _reported(call, error)
    if log is not None:
        write(log, call, left, late=True)


# --- turns ----------------------------------------------------------------------------------------


def fair_turns(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Lets the unary calls of several principals take turns. Streams are not held up."""
    queue = state.fair_queue
    if queue is None or method.streaming:
        return handler

    async def in_turn(call: Call) -> Any:
        turn = await queue.enter(call.principal.id)
        try:
            return await handler(call)
        finally:
            queue.leave(turn)

    return in_turn


# --- the model ------------------------------------------------------------------------------------


def one_model(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Keeps the embedding model from being switched during a unary call.

    Streams that work with vectors pass the gate themselves, message by message.
    """
    if method.streaming:
        return handler

    async def steady(call: Call) -> Any:
        async with state.gate.together():
            return await handler(call)

    return steady


# --- the order ------------------------------------------------------------------------------------

OUTER: Final[tuple[Layer, ...]] = (
    metering,
    tracing,
    access_log,
    audit,
    error_boundary,
    authentication,
)
"""Layers around every RPC, including those that are not implemented."""

INNER: Final[tuple[Layer, ...]] = (
    admission,
    single_request,
    checked_requests,
    authorization,
    audit_open,
    redaction,
    time_limit,
    shield,
    fair_turns,
    one_model,
)
"""Layers around a servicer's method."""


def compose(
    layers: tuple[Layer, ...], method: Method, handler: Handler, state: ServerState
) -> Handler:
    """``handler`` wrapped in ``layers``, the first outermost."""
    for layer in reversed(layers):
        handler = layer(method, handler, state)
    return handler
