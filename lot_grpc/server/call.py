"""An RPC of the contract, and a call of it on its way through the layers."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from lot_grpc.domain.access import ANONYMOUS, Credentials, Principal
from lot_grpc.server.access_rule import Rule
from lot_grpc.work import Work

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

CALL_ID_KEY = "lot-call-id"
"""Trailing metadata key of the id by which the operator finds a call in the log."""

current_call_id: ContextVar[str] = ContextVar("lot_call_id", default="")
"""Id of the current call, for the logs of whatever runs inside it. Empty outside a call."""

_PREFIX = secrets.token_hex(4)
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Method:
    """An RPC. ``name`` is the form callers know: ``PatternService.SavePattern``."""

    name: str
    request_type: type[Message]
    response_type: type[Message]
    client_streaming: bool
    server_streaming: bool
    writes: bool
    rule: Rule | None = None

    @classmethod
    def of(cls, descriptor: MethodDescriptor) -> Method:
        """From a descriptor. An RPC not marked ``NO_SIDE_EFFECTS`` in the proto is a write."""
        level = descriptor.GetOptions().idempotency_level
        return cls(
            name=f"{descriptor.containing_service.name}.{descriptor.name}",
            request_type=GetMessageClass(descriptor.input_type),
            response_type=GetMessageClass(descriptor.output_type),
            client_streaming=descriptor.client_streaming,
            server_streaming=descriptor.server_streaming,
            writes=level != MethodOptions.NO_SIDE_EFFECTS,
            rule=Rule.of(descriptor),
        )

    @classmethod
    def unknown(cls, name: str) -> Method:
        """An RPC that this version's contract does not have, to be refused."""
        return cls(name, Empty, Empty, client_streaming=True, server_streaming=True, writes=False)

    @property
    def streaming(self) -> bool:
        """True if messages stream in either direction."""
        return self.client_streaming or self.server_streaming


_NONE = Credentials()


class Interruptible(Protocol):
    """Something a servicer waits on that can be made to raise instead."""

    def interrupt(self, error: BaseException) -> None:
        """Make the next read, or the one being waited for, raise ``error``."""


class Call:
    """One call. Layers read it and fill it in; the log reports what they leave in it."""

    __slots__ = (
        "abandoned",
        "audited",
        "authorize",
        "begun",
        "bytes_received",
        "bytes_sent",
        "code",
        "context",
        "credentials",
        "ending",
        "error",
        "first_request",
        "id",
        "messages_received",
        "messages_sent",
        "method",
        "namespace",
        "notices",
        "peer",
        "principal",
        "reader",
        "reason",
        "request",
        "stopped",
        "task",
        "trace_id",
        "why",
        "work",
    )

    begun: Work
    """The work done for it, or for an identical earlier request."""

    def __init__(self, method: Method, context: Context) -> None:
        self.id = f"{_PREFIX}{next(_NUMBERS):04x}"
        self.method = method
        self.context = context
        self.request: Any = None
        """None at first, then bytes, then a message; for request streams their iterator."""
        self.first_request: Any = None
        """The first request of a stream."""
        self.audited = False
        """Whether the audit log records it, and not only if it is refused."""
        self.namespace = ""
        self.peer = context.peer()
        """Address and port of the client. Read now: reading it after the end crashes gRPC."""
        self.credentials = _NONE
        """Read once: gRPC crashes if it is asked for them after the end of the call."""
        self.principal = ANONYMOUS
        self.authorize: Callable[[Principal], None] | None = None
        """Checks again that a principal may make it; raises if not. None: it was never checked."""
        self.notices: list[Message] = []
        """For its next response, from the layers."""
        self.code = "OK"
        self.reason = ""
        self.why = ""
        """What the caller is not told about its refusal."""
        self.trace_id = ""
        """Of the trace that the call belongs to, in hexadecimal; empty if it is not traced."""
        self.bytes_received = self.bytes_sent = 0
        self.messages_received = self.messages_sent = 0
        """So far. A single response is counted when it has been made, in bytes only."""
        self.error: BaseException | None = None
        """A failure on the server's side; the log shows its cause."""
        self.task: asyncio.Task[Any] | None = None
        """The task of the RPC itself, which ends when the caller disconnects."""
        self.work: asyncio.Task[Any] | None = None
        """The shielded task of a write, which runs on."""
        self.reader: Interruptible | None = None
        self.ending = False
        """True once its reader was told to end."""
        self.abandoned = False
        """True once the caller of a write has disconnected."""
        self.stopped: Exception | None = None
        """Why the server cancelled it; None if it did not."""

    def end(self, error: Exception) -> None:
        """End a stream with an error: the first time at its next read, if it reads at all.

        Shielded work ends after its current step.
        """
        if self.reader is not None and not self.ending:
            self.ending = True
            self.reader.interrupt(error)
        elif self.task is not None:
            self.stopped = error
            self.task.cancel()

    @property
    def owner(self) -> str:
        """Who shares limits: a principal, or without authentication a connection."""
        return self.principal.id or self.peer

    def when_over(self, then: Callable[[], None]) -> None:
        """Run ``then`` once the call is over, including any shielded work."""
        if self.work is not None and not self.work.done():
            self.work.add_done_callback(lambda _: then())
        else:
            then()


Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, Any]]
"""What a layer wraps. It returns the serialized response, or None for a response stream."""
