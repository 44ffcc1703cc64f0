"""The real encoder, loaded once, and a fake one that tests hold by a gate."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.catalog import DEFAULT_CACHE_ENTRIES, DEFAULT_MODEL, card_of
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.fastembed import FastembedEmbedder
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.model_files import ModelFiles, locate
from lot_grpc.embedding.openai import OpenAIEmbedder, open_openai
from lot_grpc.embedding.windows import Windows
from lot_grpc.ports import EmbeddingContract
from tests.embedding.openai_helpers import Open
from tests.embedding.openai_server import KEY, Endpoint, endpoint


@pytest.fixture(scope="session")
def model_files() -> ModelFiles:
    """The installed model pack. Without it the model's tests fail; they never skip in silence."""
    try:
        return locate(card_of(DEFAULT_MODEL))
    except ModelUnavailableError as error:
        pytest.fail(f"{error} (leave these tests out with: -m 'not model')")


@pytest.fixture(scope="session")
def encoder(model_files: ModelFiles) -> OnnxEncoder:
    return OnnxEncoder(model_files, threads=2)


@pytest.fixture
async def fastembed_embedder(encoder: OnnxEncoder) -> AsyncIterator[FastembedEmbedder]:
    card = card_of(DEFAULT_MODEL)
    contract = EmbeddingContract(
        card.name, 384, "cosine", card.query_prefix, card.sha256[0], "", ""
    )
    embedder = FastembedEmbedder(encoder, contract, threads=2, cache_entries=100)
    yield embedder
    await embedder.close()


@pytest.fixture
async def openai_embedder() -> AsyncIterator[OpenAIEmbedder]:
    with endpoint() as server:
        options = EndpointOptions(server.url, query_prefix="query: ", max_tokens=512)
        embedder = await open_openai("m", options)
        yield embedder
        await embedder.close()


class GatedEncoder:
    """Embeds nothing until the gate opens, and remembers what it was asked.

    Each "|" ends a window. ``split_on`` are the threads that were asked to split a text, ``alone``
    the texts that were alone.
    """

    max_tokens = 250
    max_characters = 1000

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.seen: list[str] = []
        self.alone: list[str] = []
        self.split_on: list[threading.Thread] = []

    def split(self, prefix: str, text: str) -> Windows | None:
        self.split_on.append(threading.current_thread())
        return Windows(tuple(text.split("|")), truncated=False) if "|" in text else None

    def count(self, text: str) -> int:
        return len(text)

    def encode(self, text: str, *, alone: bool = False) -> NDArray[np.float32]:
        self.seen.append(text)
        if alone:
            self.alone.append(text)
        self.entered.set()
        assert self.gate.wait(30)
        if "fails" in text:
            raise ValueError("no vector for this")
        if "panics" in text:
            raise Panic("as a Rust extension does")
        return np.array([len(text), 0.0], dtype=np.float32)


class Panic(BaseException):
    """Like pyo3's PanicException, which is no Exception."""


@pytest.fixture
def gated() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
async def embedder_over(
    gated: GatedEncoder,
) -> AsyncIterator[Callable[..., FastembedEmbedder]]:
    """Make an embedder over the gated encoder; one thread, so that order can be told."""
    made: list[FastembedEmbedder] = []

    def make(threads: int = 1, cache_entries: int = 100) -> FastembedEmbedder:
        contract = EmbeddingContract("fake", 2, "cosine", "query: ", "", "", "")
        made.append(
            FastembedEmbedder(gated, contract, threads=threads, cache_entries=cache_entries)
        )
        return made[-1]

    yield make
    gated.gate.set()
    for embedder in made:
        await embedder.close()


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint() as served:
        yield served


@pytest.fixture
async def opened(server: Endpoint) -> AsyncIterator[Open]:
    """Open an embedder on the server; what the start asked is forgotten."""
    made: list[OpenAIEmbedder] = []

    async def open_(**options: Any) -> OpenAIEmbedder:
        given: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "backoff_seconds": 0.001}
        entries = options.pop("cache_entries", DEFAULT_CACHE_ENTRIES)
        made.append(
            await open_openai(
                "some-model", EndpointOptions(**(given | options)), cache_entries=entries
            )
        )
        server.requests.clear()
        server.most = 0
        return made[-1]

    yield open_
    server.gate.set()
    for embedder in made:
        await embedder.close()
