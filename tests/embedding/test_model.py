"""The real model: meaning, truncation, steadiness, the event loop."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.catalog import CARDS, DEFAULT_MODEL
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.model_files import ModelFiles, file_sha256, locate


@pytest.mark.model
async def test_the_same_wish_in_other_words_is_found(fastembed_embedder: FastembedEmbedder):
    query = await fastembed_embedder.embed_query("Sign into FB")
    asked, same, other = await fastembed_embedder.embed_documents(
        ["Sign into FB", "Login to Facebook", "Bake a chocolate cake"]
    )
    assert np.dot(asked.vector, same.vector) > 0.7
    assert np.dot(query.vector, same.vector) > 0.7
    assert np.dot(query.vector, other.vector) < 0.6


@pytest.mark.model
async def test_a_vector_does_not_depend_on_what_was_embedded_beside_it(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    texts = [f"{'a longer tale about ' * (n % 5)}cache number {n}" for n in range(40)]
    beside = await fastembed_embedder.embed_documents(texts)
    for text, embedding in zip(texts, beside, strict=True):
        assert np.array_equal(encoder.encode(text), np.array(embedding.vector, dtype=np.float32))


@pytest.mark.model
async def test_the_query_is_embedded_with_the_prefix_of_the_contract(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    query = await fastembed_embedder.embed_query("open the store")
    prefixed = encoder.encode(fastembed_embedder.contract.query_prefix + "open the store")
    assert np.array_equal(prefixed, np.array(query.vector, dtype=np.float32))


@pytest.mark.model
def test_what_is_too_long_is_told_by_tokens_and_not_by_characters(encoder: OnnxEncoder):
    assert encoder.split("", "a " * 510) is None
    assert encoder.split("", "a " * 511) is not None
    assert encoder.split("", "!" * 510) is None
    assert encoder.split("", "!" * 511) is not None, "each is a token of one byte"
    assert encoder.split("", "각 " * 200) is not None, "200 syllables are 600 tokens"
    assert encoder.split("a ", "a " * 510) is not None, "with the prefix it is too long"


@pytest.mark.model
@given(text=st.text(max_size=510).filter(lambda text: len(text.encode()) <= 510))
def test_no_text_of_510_bytes_has_more_than_510_tokens(encoder: OnnxEncoder, text: str):
    # split() counts tokens only of texts with more bytes than that.
    assert not encoder._tokenizer.encode(text).overflowing


@pytest.mark.model
async def test_a_megabyte_is_cut_and_said_so(fastembed_embedder: FastembedEmbedder):
    start, whole = await fastembed_embedder.embed_documents(
        ["words and more words " * 500, "words and more words " * 50_000]
    )
    assert not start.truncated, "2,000 tokens are read whole"
    assert whole.truncated
    assert np.dot(start.vector, whole.vector) > 0.99


@pytest.mark.model
async def test_text_that_is_no_unicode_fails_alone(fastembed_embedder: FastembedEmbedder):
    bad, good = await asyncio.gather(
        fastembed_embedder.embed_query("half a pair \ud800"),
        fastembed_embedder.embed_query("sound"),
        return_exceptions=True,
    )
    assert isinstance(bad, EmbeddingFailedError)
    assert not isinstance(good, BaseException)


@pytest.mark.model
async def test_the_event_loop_runs_on_while_documents_are_embedded(
    fastembed_embedder: FastembedEmbedder,
):
    texts = [f"document number {n} about the event loop" for n in range(100)]
    ticks = 0
    work = asyncio.create_task(fastembed_embedder.embed_documents(texts))
    while not work.done():
        ticks += 1
        await asyncio.sleep(0)
    assert len(await work) == 100
    assert ticks > 300, "an embedder that blocked would leave the loop a few ticks"


@pytest.mark.model
async def test_the_opened_embedder_states_its_contract():
    embedder = await open_fastembed(threads=1)
    try:
        contract = embedder.contract
        assert (contract.model, contract.dimensions) == (DEFAULT_MODEL, 384)
        assert (contract.distance, contract.tokenizer) == ("cosine", "")
        assert contract.query_prefix.startswith("Represent this sentence")
        assert contract.model_sha256 == CARDS[DEFAULT_MODEL].sha256[0]
    finally:
        await embedder.close()


@pytest.mark.model
def test_a_model_of_other_dimensions_is_refused(model_files: ModelFiles):
    card = dataclasses.replace(model_files.card, dimensions=768)
    with pytest.raises(ModelUnavailableError, match="returns 384 dimensions"):
        OnnxEncoder(dataclasses.replace(model_files, card=card))


@pytest.mark.model
def test_a_file_that_is_no_model_is_refused_by_name(model_files: ModelFiles, tmp_path: Path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model_files.folder / name).read_bytes())
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"no model")
    files = locate(model_files.card, path=tmp_path, sha256=file_sha256(broken))
    with pytest.raises(ModelUnavailableError, match=r"model\.onnx cannot be loaded"):
        OnnxEncoder(files)


def test_the_catalog_agrees_with_fastembed():
    from fastembed import TextEmbedding
    from fastembed.text.onnx_embedding import OnnxTextEmbedding
    from fastembed.text.pooled_normalized_embedding import PooledNormalizedEmbedding

    cls = {model.model: model.dim for model in OnnxTextEmbedding._list_supported_models()}
    mean = {model.model: model.dim for model in PooledNormalizedEmbedding._list_supported_models()}
    assert TextEmbedding.EMBEDDINGS_REGISTRY
    for card in CARDS.values():
        assert (cls if card.pooling == "cls" else mean)[card.name] == card.dimensions
