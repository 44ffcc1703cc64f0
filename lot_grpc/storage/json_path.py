"""Payload keys as both Qdrants address them."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from lot_grpc.ports import NAMESPACE_KEY

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@lru_cache(maxsize=1024)
def json_path(key: str) -> str:
    """A top-level key as Qdrant's JSON path, where a bare dot would mean a nested key.

    Raises:
        ValueError: the key has a quote or a backslash, which a path cannot carry.
    """
    if _PLAIN_KEY.fullmatch(key):
        return key
    if '"' in key or "\\" in key:
        raise ValueError(f"payload key {key!r} cannot be addressed: it has a quote or backslash")
    return json.dumps(key, ensure_ascii=False)


def payload_choice(payload: bool | tuple[str, ...], namespace: str | None) -> bool | list[str]:
    """The payload keys to fetch. The namespace is included only where it is not already known."""
    if payload is True:
        return True
    paths = [json_path(key) for key in payload or ()]
    if namespace is None:
        paths.append(NAMESPACE_KEY)
    return paths or False
