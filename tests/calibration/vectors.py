"""The real model's vectors, kept in a file between runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lot_grpc.ports import Embedding

_AT_ONCE = 256


class CachedVectors:
    """An embedder that embeds each text once. ``close`` writes the file."""

    def __init__(self, inner: Any, file: Path) -> None:
        self._inner, self._file = inner, file
        self._known: dict[str, NDArray[np.float32]] = {}
        self._saved = 0
        if file.exists():
            with np.load(file) as kept:
                self._known = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
            self._saved = len(self._known)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def embed_query(self, text: str) -> Embedding:
        if (key := _key("query", text)) not in self._known:
            embedding = await self._inner.embed_query(text)
            self._known[key] = np.array(embedding.vector, dtype=np.float32)
        return Embedding(self._known[key].tolist())

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        known = await self.vectors("document", texts)
        return [Embedding(one.tolist()) for one in known]

    async def vectors(self, role: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of many texts, a row each. The file is written as they are made."""
        new = [text for text in dict.fromkeys(texts) if _key(role, text) not in self._known]
        for start in range(0, len(new), _AT_ONCE):
            part = new[start : start + _AT_ONCE]
            if role == "query":
                made = [await self._inner.embed_query(text) for text in part]
            else:
                made = await self._inner.embed_documents(part)
            for text, one in zip(part, made, strict=True):
                self._known[_key(role, text)] = np.array(one.vector, dtype=np.float32)
        if len(new) >= _AT_ONCE:
            self.save()
        return np.array([self._known[_key(role, text)] for text in texts], dtype=np.float32)

    def save(self) -> None:
        if len(self._known) == self._saved:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("wb") as out:
            np.savez(out, keys=list(self._known), vectors=np.array(list(self._known.values())))
        self._saved = len(self._known)

    async def close(self) -> None:
        self.save()
        await self._inner.close()


def _key(role: str, text: str) -> str:
    return hashlib.sha256(f"{role} {text}".encode(errors="surrogatepass")).hexdigest()[:32]
