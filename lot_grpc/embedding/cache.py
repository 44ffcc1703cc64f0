"""Vectors of texts that were embedded lately."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Literal, TypeAlias

from lot_grpc.embedding.model import Encoded

Role: TypeAlias = Literal["query", "document"]

Key: TypeAlias = tuple[Role, str | bytes]
"""The text itself, or of a long one its SHA-256: never a hash short enough to collide."""

_LONGEST_PLAIN_KEY = 256


def key_of(role: Role, text: str) -> Key:
    """The key of a text; it keeps at most 256 characters alive."""
    if len(text) <= _LONGEST_PLAIN_KEY:
        return role, text
    return role, hashlib.sha256(text.encode(errors="surrogatepass")).digest()


class VectorCache:
    """The ``entries`` vectors used last, 0 for none. Takes about 2 KB an entry at 384 d."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[Key, Encoded] = OrderedDict()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, key: Key) -> Encoded | None:
        """The vector, which thereby counts as just used."""
        found = self._vectors.get(key)
        if found is not None:
            self._vectors.move_to_end(key)
        return found

    def put(self, key: Key, encoded: Encoded) -> None:
        """Keep a vector, and drop the one unused for longest when there are too many."""
        self._vectors[key] = encoded
        self._vectors.move_to_end(key)
        if len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)
