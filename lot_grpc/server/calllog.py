"""The log line of a call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from lot_grpc.server.call import Call

CallLog: TypeAlias = Callable[[Mapping[str, object]], None]
"""Receives one record per call: ``level`` (``info``, ``warning`` or ``error``), ``method``,
``code``, ``reason``, ``duration_ms``, ``call_id``, ``namespace``; ``why`` for refused credentials,
which the caller is not told; ``error`` (an exception) if the failure is not the caller's: for
INTERNAL the operator should see a traceback, for others the cause; ``invented`` (True) if the
contract has no such method: its name is the caller's; ``trace_id`` if the call is traced; ``late``
(True) in a second record of a write that continued after its caller disconnected,
whose ``duration_ms`` counts from then. Never contents. Exceptions from it are dropped."""

_QUIET: Final = frozenset({"OK", "CANCELLED"})
_FAULTS: Final = frozenset({"INTERNAL", "UNKNOWN"})


def write(log: CallLog, call: Call, start: float, *, late: bool = False) -> None:
    """Log the outcome of a call. ``start`` is a ``time.perf_counter()``."""
    code = call.code
    record: dict[str, object] = {
        "level": "info" if code in _QUIET else "error" if code in _FAULTS else "warning",
        "method": call.method.name,
        "code": code,
        "reason": call.reason,
        "duration_ms": round((time.perf_counter() - start) * 1000, 3),
        "call_id": call.id,
        "namespace": call.namespace,
    }
    if call.why:
        record["why"] = call.why
    if call.trace_id:
        record["trace_id"] = call.trace_id
    if call.method.rule is None:
        record["invented"] = True
    if late:
        record["late"] = True
    if call.error is not None:
        record["error"] = call.error
    with contextlib.suppress(Exception):  # a log that fails must not fail the call
        log(record)
