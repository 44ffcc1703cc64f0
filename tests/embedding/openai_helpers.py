"""An embedder over an endpoint of the tests, and what it should answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lot_grpc.embedding.openai import OpenAIEmbedder
from lot_grpc.testing.hashing import HashingEmbedder
from tests.embedding.openai_server import NATIVE

Open = Callable[..., Awaitable[OpenAIEmbedder]]


SECRET_TEXT = "the launch code is swordfish"


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that")


async def vectors(embedder: OpenAIEmbedder, texts: list[str]) -> list[list[float]]:
    return [embedding.vector for embedding in await embedder.embed_documents(texts)]


async def expected(texts: list[str]) -> list[list[float]]:
    return [made.vector for made in await HashingEmbedder(NATIVE).embed_documents(texts)]


def same(one: list[list[float]], other: list[list[float]]) -> bool:
    return len(one) == len(other) and all(
        a == pytest.approx(b, abs=1e-6) for a, b in zip(one, other, strict=True)
    )
