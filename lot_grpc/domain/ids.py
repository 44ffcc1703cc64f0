"""Identifiers: ids of records, and their points in the store."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from lot_grpc.domain.text_form import normal_form

DEFAULT_NAMESPACE = "default"

OWN_PREFIX: Final = "/"
"""Begins the request ids that the server makes itself. No caller's id may begin with it."""

HOUR: Final = 3600 * 1_000_000
"""In microseconds."""

REQUEST_ID_LIFE: Final = 24 * HOUR
"""How long a request id is remembered."""

RETRIEVAL_LIFE: Final = 7 * 24 * HOUR
"""How long a retrieval is retained unless a policy says otherwise."""

SELECTION_LIFE: Final = 30 * 24 * HOUR
"""How long a selection id can be named."""

_POINTS = UUID("6f0f5a7e-0d0b-5c1e-9a53-1f2d6c0e4b11")
"""Root of all point ids. Changing it would lose every stored record."""

_ROOT = _POINTS.bytes  # the attribute is recomputed at each access
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def namespace_or_default(namespace: str) -> str:
    """The namespace of a request: empty means ``default``."""
    return namespace or DEFAULT_NAMESPACE


def new_id(prefix: str) -> str:
    """A random id: a prefix and 80 bits, for example ``p-7m3k…``."""
    number = secrets.randbits(80)
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(75, -1, -5)]
    return f"{prefix}-{''.join(digits)}"


def own_request_id(*parts: str | int) -> str:
    """The request id of a write that the server makes by itself, the same for the same parts.

    No caller can send it, so nobody takes it before the server does.
    """
    return f"{OWN_PREFIX}{content_hash(parts)}"


def point_id(namespace: str, resource_kind: str, *parts: str) -> str:
    """The point of (namespace, kind, id…): a UUIDv5, so that a repeat finds the same one.

    Texts that differ only in their Unicode form have the same point.
    """
    name = normal_form("\0".join((namespace, resource_kind, *parts))).encode()
    return _uuid5(hashlib.sha1(_ROOT + name, usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """A resource by its kind (``domain.change.ResourceKind``) and its id."""

    kind: str
    id: str

    def point(self, namespace: str) -> str:
        """The point of the resource in a namespace."""
        return _resource_point(namespace, self.kind, self.id)


@lru_cache(1024)
def _resource_point(namespace: str, kind: str, id: str) -> str:
    """``point_id``, for the several times that one call needs it."""
    return point_id(namespace, kind, id)


def point_ids(head: tuple[str, ...], tails: Iterable[str]) -> list[str]:
    """``point_id(*head, tail)`` for each tail, in half of the time."""
    hashed = hashlib.sha1(
        _ROOT + normal_form("\0".join((*head, ""))).encode(), usedforsecurity=False
    )
    points = []
    for tail in tails:
        whole = hashed.copy()
        whole.update(normal_form(tail).encode())
        points.append(_uuid5(whole.hexdigest()))
    return points


def _uuid5(digits: str) -> str:
    """Written out, as every call does it several times and `uuid5` takes five times as long."""
    variant = _VARIANTS[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def etag_of(namespace: str, *parts: str | int) -> str:
    """The etag of one revision of a record: its namespace, id, times and revision, hashed.

    A record that reuses the id of a deleted one has different times, so an etag of the old one
    never matches. All parts are stored and exported, so restarts keep it, and imports into the same
    namespace.
    """
    return content_hash([namespace, *parts])[:20]


def content_hash(value: Any) -> str:
    """SHA-256 (hex, 32 digits kept) of a JSON-like value, independent of key order.

    Texts that differ only in their Unicode form have the same hash.
    """
    return hashlib.sha256(normal_form(_JSON.encode(value)).encode()).hexdigest()[:32]
