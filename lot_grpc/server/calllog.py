"""The one line that is logged for each call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from lot_grpc.server.call import Call

CallLog: TypeAlias = Callable[[Mapping[str, object]], None]
"""Takes one record for each call: ``level`` (``info``, ``warning`` or ``error``), ``method``,
``code``, ``reason``, ``duration_ms``, ``call_id``, ``namespace``; ``error`` (an exception) where
the failure is not the caller's: of INTERNAL the operator should see a traceback, of others what
caused them; ``late`` (True) in a second record of a write that went on after its caller had left,
whose ``duration_ms`` counts from then. Never contents. What it raises is dropped."""

_QUIET: Final = frozenset({"OK", "CANCELLED"})
_FAULTS: Final = frozenset({"INTERNAL", "UNKNOWN"})


def write(log: CallLog, call: Call, start: float, *, late: bool = False) -> None:
    """Log what a call came to. ``start`` is a ``time.perf_counter()``."""
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
    if late:
        record["late"] = True
    if call.error is not None:
        record["error"] = call.error
    with contextlib.suppress(Exception):  # a log that fails must not fail the call
        log(record)
