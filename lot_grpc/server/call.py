"""One RPC of the contract, and one call of it on its way through the layers."""

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

from lot_grpc.work import Work

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

CALL_ID_KEY = "lot-call-id"
"""Trailing metadata key of the id under which the operator finds a call in the log."""

current_call_id: ContextVar[str] = ContextVar("lot_call_id", default="")
"""Id of the call being carried out, for the logs of whatever runs inside it. Empty outside."""

_PREFIX = secrets.token_hex(4)
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Method:
    """An RPC. ``name`` is as callers say it: ``PatternService.SavePattern``."""

    name: str
    request_type: type[Message]
    response_type: type[Message]
    client_streaming: bool
    server_streaming: bool
    writes: bool

    @classmethod
    def of(cls, descriptor: MethodDescriptor) -> Method:
        """Whatever is not marked ``NO_SIDE_EFFECTS`` in the proto writes."""
        level = descriptor.GetOptions().idempotency_level
        return cls(
            name=f"{descriptor.containing_service.name}.{descriptor.name}",
            request_type=GetMessageClass(descriptor.input_type),
            response_type=GetMessageClass(descriptor.output_type),
            client_streaming=descriptor.client_streaming,
            server_streaming=descriptor.server_streaming,
            writes=level != MethodOptions.NO_SIDE_EFFECTS,
        )

    @classmethod
    def unknown(cls, name: str) -> Method:
        """An RPC that this version's contract does not have, to be refused."""
        return cls(name, Empty, Empty, client_streaming=True, server_streaming=True, writes=False)

    @property
    def streaming(self) -> bool:
        """True if messages stream in either direction."""
        return self.client_streaming or self.server_streaming


class Interruptible(Protocol):
    """Something a servicer waits on that can be made to raise instead."""

    def interrupt(self, error: BaseException) -> None:
        """Make the next read, or the one being waited for, raise ``error``."""


class Call:
    """One call. Layers read and fill it; what they leave in it is what the log says."""

    __slots__ = (
        "abandoned",
        "begun",
        "code",
        "context",
        "error",
        "id",
        "method",
        "namespace",
        "peer",
        "reader",
        "reason",
        "request",
        "stopped",
        "task",
        "work",
    )

    begun: Work
    """The work that is done for it, or for an identical request that came before."""

    def __init__(self, method: Method, context: Context) -> None:
        self.id = f"{_PREFIX}{next(_NUMBERS):04x}"
        self.method = method
        self.context = context
        self.request: Any = None
        """None at first, then bytes, then a message; for streams of requests what iterates over
        them."""
        self.namespace = ""
        self.peer = ""
        """Address and port of the client."""
        self.code = "OK"
        self.reason = ""
        self.error: BaseException | None = None
        """A failure on the server's side; the log shows its cause."""
        self.task: asyncio.Task[Any] | None = None
        """The task of the RPC itself, which ends when the caller leaves."""
        self.work: asyncio.Task[Any] | None = None
        """The shielded task of a write, which does not."""
        self.reader: Interruptible | None = None
        self.abandoned = False
        """True once the caller of a write is gone."""
        self.stopped = False
        """True if the server cancelled it at the end of its grace."""

    def when_over(self, then: Callable[[], None]) -> None:
        """Run ``then`` once the call is over, including any shielded work."""
        if self.work is not None and not self.work.done():
            self.work.add_done_callback(lambda _: then())
        else:
            then()


Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, Any]]
"""What a layer wraps. The answer is serialized, or None for a stream of answers."""
