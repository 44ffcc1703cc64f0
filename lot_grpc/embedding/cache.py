"""Caches of recent results: vectors of texts, scores of pairs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Generic, Literal, TypeAlias, TypeVar

from lot_grpc.embedding.model import Encoded
from lot_grpc.work import current_caller

Role: TypeAlias = Literal["query", "document"]

Key: TypeAlias = tuple[Role, str, str | bytes]
"""Role, scope, and the text itself, or the SHA-256 of a long one: never a hash short enough to
collide. The scope keeps callers in one namespace from finding out, by the time that a text takes,
whether it was embedded in another."""

_LONGEST_PLAIN_KEY = 256


def key_of(role: Role, text: str) -> Key:
    """The key of a text for the current caller; it keeps at most 256 characters of it alive."""
    scope = current_caller().cache_scope
    if len(text) <= _LONGEST_PLAIN_KEY:
        return role, scope, text
    return role, scope, hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def pair_key_of(query: str, text: str) -> bytes:
    """The key of a pair for the current caller, 32 bytes."""
    pair = f"{current_caller().cache_scope} {len(query)} {query}{text}"
    return hashlib.sha256(pair.encode(errors="surrogatepass")).digest()


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class RecentlyUsed(Generic[KeyT, ValueT]):
    """The ``entries`` most recently used values, 0 for none."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._values: OrderedDict[KeyT, ValueT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: KeyT) -> ValueT | None:
        """The value, which becomes the most recently used."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: KeyT, value: ValueT) -> None:
        """Cache a value; if there are too many, drop the least recently used."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._entries:
            self._values.popitem(last=False)


class VectorCache(RecentlyUsed[Key, Encoded]):
    """Vectors by text. Takes about 2 KB per entry at 384 d."""


class ScoreCache(RecentlyUsed[bytes, float]):
    """Scores by pair of query and text. Takes about 0.2 KB per entry."""
