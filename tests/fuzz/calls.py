"""One call of a fuzz: what is sent, and what came of it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from lot_grpc.pb.lot.v1 import error_reason_pb2
from tests.fuzz.making import Maker
from tests.server.service import SERVICES

SECONDS = 75.0
"""How long a call may take. The service ends it after 60 s itself."""
_CUT_SECONDS = 0.2
"""After which a stream is cut that may be without an end."""

FOREIGN = {
    "Health": health_pb2.DESCRIPTOR.services_by_name["Health"],
    "ServerReflection": reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
}
"""Services of gRPC itself, whose errors have no reason of ours."""
RPCS: dict[str, MethodDescriptor] = {
    f"{name}.{method.name}": method
    for name, service in (SERVICES | FOREIGN).items()
    for method in service.methods
}
Metadata: TypeAlias = "Sequence[tuple[str, str | bytes]]"

_REASONS = {
    name.removeprefix("ERROR_REASON_")
    for name in error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_name
}
_CORE = (
    "larger than max",  # a message over the limit
    "decompressed",
)
"""What core says where no code of ours sees the call."""


@dataclass(frozen=True)
class Attempt:
    """Call ``number`` of an RPC in the run of a seed: the same each time but for ids made there."""

    rpc: str
    number: int
    what: str
    messages: tuple[bytes, ...]
    cut: bool = False
    """Cancelled behind its messages, and not ended."""

    @property
    def text(self) -> str:
        size = sum(map(len, self.messages))
        few = b" ".join(self.messages)[:120]
        return f"{self.rpc} {self.number} ({self.what}, {size} bytes: {few!r})"


def attempt(maker: Maker, seed: int, rpc: str, number: int) -> Attempt:
    rng = random.Random(f"{seed}/{rpc}/{number}")
    kind = RPCS[rpc].input_type
    what = rng.choices(("good", "bounds", "hostile"), (4, 4, 2))[0]

    def message(what: str) -> bytes:
        if what == "good":
            return maker.good(rng, rpc, kind).SerializeToString()  # type: ignore[no-any-return]
        return (maker.bounds if what == "bounds" else maker.hostile)(rng, rpc, kind)

    if not RPCS[rpc].client_streaming:
        return Attempt(rpc, number, what, (message(what),))
    whats = [rng.choice(("good", "good", what)) for _ in range(rng.choice((0, 1, 2, 5)))]
    return Attempt(rpc, number, what, tuple(map(message, whats)), rng.random() < 0.2)


@dataclass(frozen=True)
class Outcome:
    """What came of a call. ``wrong`` is empty where it may be so."""

    code: str
    seconds: float
    wrong: str = ""


def make(channel: grpc.Channel, it: Attempt, maker: Maker, metadata: Metadata = ()) -> Outcome:
    """Make the call, and learn from its answers.

    By the library's client without asyncio: the other one loses the status of a call that ends
    while it writes.
    """
    method: Any = RPCS[it.rpc]
    shape = (
        f"{'stream' if method.client_streaming else 'unary'}"
        f"_{'stream' if method.server_streaming else 'unary'}"
    )
    call: Any = getattr(channel, shape)(f"/{method.containing_service.full_name}/{method.name}")
    cut, over = threading.Event(), threading.Event()
    start = time.monotonic()
    code, wrong = "OK", ""
    try:
        if method.server_streaming:
            sent = _sent(it, over) if method.client_streaming else it.messages[0]
            answers = call(sent, timeout=SECONDS, metadata=metadata)
            if it.cut or not method.client_streaming:  # nothing else may end it
                threading.Timer(_CUT_SECONDS, _end, (cut, answers)).start()
        else:
            answers = [call(it.messages[0], timeout=SECONDS, metadata=metadata)]
        for raw in answers:
            maker.learn(method.output_type._concrete_class.FromString(raw))
    except grpc.RpcError as error:
        code = "CUT" if cut.is_set() else error.code().name
        foreign = it.rpc.partition(".")[0] in FOREIGN
        wrong = "" if cut.is_set() else _wrong(error, foreign)
    finally:
        over.set()
    return Outcome(code, time.monotonic() - start, wrong)


def _end(cut: threading.Event, answers: Any) -> None:
    if answers.is_active():
        cut.set()
        answers.cancel()


def _sent(it: Attempt, over: threading.Event) -> Iterator[bytes]:
    yield from it.messages
    if it.cut:
        over.wait(SECONDS)


def _wrong(error: Any, foreign: bool) -> str:
    """Why an error may not be so."""
    code, text = error.code().name, error.details() or ""
    if code in ("INTERNAL", "UNKNOWN", "DATA_LOSS", "UNAVAILABLE"):
        return f"{code}: {text[:200]}"
    if foreign or any(words in text for words in _CORE):
        return ""
    raw: Any = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    try:
        status = status_pb2.Status.FromString(raw)
        info = error_details_pb2.ErrorInfo()
        if any(one.Unpack(info) for one in status.details) and info.reason in _REASONS:
            return ""
    except DecodeError:
        pass
    if code == "DEADLINE_EXCEEDED":
        return f"no answer within {SECONDS:g} s"
    return f"{code} without a reason: {text[:200]}"
