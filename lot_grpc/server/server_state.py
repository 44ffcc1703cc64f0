"""The state that the layers of one server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lot_grpc.domain.rate_limits import RateLimiter
from lot_grpc.server.call import Handler, Method
from lot_grpc.server.calllog import CallLog
from lot_grpc.server.fair_queue import FairQueue
from lot_grpc.server.guards import Guards
from lot_grpc.server.inflight import InFlight
from lot_grpc.server.limits import Limits
from lot_grpc.server.refusals import Refusals
from lot_grpc.services.reindex.gate import ModelGate


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state that the layers of one server share."""

    limits: Limits
    inflight: InFlight
    log: CallLog | None
    gate: ModelGate
    guards: Guards
    rate_limiter: RateLimiter
    refusals: Refusals
    fair_queue: FairQueue | None


Layer: TypeAlias = Callable[[Method, Handler, ServerState], Handler]
"""Wraps a handler. A layer that does not concern a method returns the handler unchanged."""
