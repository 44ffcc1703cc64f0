"""Reuses the request id of a failed call when its caller repeats it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from google.protobuf.message import Message
from grpc import StatusCode

from lot_client.errors import LotError
from lot_client.requests import identified

R = TypeVar("R", bound=Message)

_SECONDS = 600.0
_MOST = 1024

_UNCERTAIN = {
    StatusCode.CANCELLED,
    StatusCode.UNKNOWN,
    StatusCode.DEADLINE_EXCEEDED,
    StatusCode.RESOURCE_EXHAUSTED,
    StatusCode.ABORTED,
    StatusCode.INTERNAL,
    StatusCode.UNAVAILABLE,
}
"""Codes of failed calls that may have been carried out nevertheless."""


class FailedCalls:
    """Recently failed calls that may have been carried out, with their request ids."""

    def __init__(self) -> None:
        self._ids: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def identified(self, request: R, namespace: str) -> Iterator[R]:
        """The request to send, with any missing request ids filled in.

        If the same call failed within 10 minutes, its ids are reused. A call cancelled by its
        caller counts as failed.
        """
        named, request_id = identified(request)
        if named is request:
            yield request
            return
        begin = f"{request.DESCRIPTOR.full_name}\0{namespace}\0".encode()
        raw = request.SerializeToString(deterministic=True)
        call = hashlib.sha256(begin + raw).digest()
        if kept := self._take(call):
            named, request_id = identified(request, kept)
        try:
            yield named
        except BaseException as error:
            if not isinstance(error, LotError) or error.code in _UNCERTAIN:
                self._keep(call, request_id)
            raise

    def _take(self, call: bytes) -> str:
        with self._lock:
            until, request_id = self._ids.pop(call, (0.0, ""))
        return request_id if time.monotonic() < until else ""

    def _keep(self, call: bytes, request_id: str) -> None:
        with self._lock:
            self._ids[call] = (time.monotonic() + _SECONDS, request_id)
            if len(self._ids) > _MOST:
                self._ids.popitem(last=False)
