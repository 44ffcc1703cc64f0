"""The real model: meaning, truncation, steadiness, the event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.catalog import CARDS, DEFAULT_MODEL
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.model_files import ModelFiles, locate
from lot_grpc.embedding.tokenizer import load_tokenizer


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


TEXTS = [
    "",
    "a",
    "Grüße an 한국어 😀 \t\n",
    "[CLS] what [MASK] means [SEP]",
    "open the store and read what is in it",
    "a longer text about the event loop, " * 20,
    "more words than the model reads at once " * 100,
]


@pytest.mark.model
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_are_the_same_to_the_last_bit_as_from_fastembed(
    model_files: ModelFiles, pooling: Literal["cls", "mean"]
):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"test/{pooling}"
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType[pooling.upper()],
        normalization=True,
        sources=ModelSource(hf=name),
        dim=384,
        model_file=model_files.model_file,
    )
    theirs = TextEmbedding(name, specific_model_path=str(model_files.folder), threads=1)
    card = dataclasses.replace(model_files.card, pooling=pooling)
    ours = OnnxEncoder(dataclasses.replace(model_files, card=card))
    for text in TEXTS:
        assert np.array_equal(ours.encode(text), next(iter(theirs.embed([text])))), text


@pytest.mark.model
def test_a_text_that_is_alone_gets_the_same_vector_to_the_last_bit(
    encoder: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
):
    for several in (True, False):
        monkeypatch.setattr(encoder._choice, "several", lambda several=several: several)
        for text in TEXTS:
            assert np.array_equal(encoder.encode(text), encoder.encode(text, alone=True)), text


@pytest.mark.model
def test_with_one_thread_the_model_is_loaded_once(model_files: ModelFiles):
    encoder = OnnxEncoder(model_files, threads=1)
    assert encoder._session_alone is None
    assert np.array_equal(encoder.encode("a text"), encoder.encode("a text", alone=True))


@pytest.mark.model
def test_the_tokenizer_is_set_up_as_by_fastembed(model_files: ModelFiles, tmp_path: Path):
    from fastembed.common.preprocessor_utils import load_tokenizer as load_as_fastembed

    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model_files.folder / name).read_bytes())
    edited = json.loads((tmp_path / "tokenizer_config.json").read_text())
    edited |= {"model_max_length": int(1e30), "max_length": 40, "truncation_side": "left"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(edited))
    added = {"sep_token": {"content": "[SEP]"}, "more": ["<one>", {"content": "<two>"}], "no": None}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(added))
    ours, (theirs, _) = load_tokenizer(tmp_path), load_as_fastembed(tmp_path)
    for text in (*TEXTS, "between <one> and <two>, on <One>"):
        assert ours.encode(text).ids == theirs.encode(text).ids


@pytest.mark.model
@pytest.mark.parametrize("length", [None, 0, -1, 1e30, True])
def test_a_model_that_states_no_length_is_refused(
    model_files: ModelFiles, tmp_path: Path, length: object
):
    (tmp_path / "tokenizer.json").write_bytes((model_files.folder / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": length}))
    with pytest.raises(ValueError, match="states no positive model_max_length"):
        load_tokenizer(tmp_path)


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
