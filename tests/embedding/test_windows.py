"""Long texts are read whole: how they are split, what becomes of the windows, what the model does.

The splitting is tested with words for tokens, the way of the windows with an encoder that stops
where the test wants it, and the rest with the real model.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.embedding.cache import key_of
from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.fastembed import FastembedEmbedder
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.windows import MOST_WINDOWS, Windows, mean_vector, split_bytes, split_text
from lot_grpc.embedding.workers import EmbeddingFault, Job, Reading, Turns, Window
from lot_grpc.testing.hashing import HashingEmbedder
from tests.embedding.conftest import GatedEncoder

Make = Callable[..., FastembedEmbedder]

# --- splitting ----------------------------------------------------------------------------------


def pieces(text: str) -> list[str]:
    """Tokens of a toy tokenizer: up to three letters of a word, as word pieces are."""
    return re.findall(r"\S{1,3}", text)


def split(text: str, room: int) -> Windows:
    starts = [match.start() for match in re.finditer(r"\S{1,3}", text)]
    return split_text(text, starts, room, lambda window: len(pieces(window)) <= room)


words = st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=120).map(" ".join)


@given(text=words, room=st.integers(1, 40))
def test_windows_lie_end_to_end_and_each_fits(text: str, room: int):
    windows = split(text, room)
    joined = "".join(windows.texts)
    assert text.startswith(joined)
    assert windows.truncated == (joined != text)
    assert len(windows.texts) <= MOST_WINDOWS
    assert all(0 < len(pieces(window)) <= room for window in windows.texts)


@given(count=st.integers(2, 700), room=st.integers(1, 40))
def test_of_whole_words_there_are_as_few_windows_as_hold_them(count: int, room: int):
    windows = split("abc " * count, room)
    lengths = [len(pieces(window)) for window in windows.texts]
    assert len(lengths) == min(MOST_WINDOWS, -(-count // room))
    assert sum(lengths) == min(count, MOST_WINDOWS * room)
    assert all(length == room for length in lengths[:-1])
    assert windows.truncated == (count > MOST_WINDOWS * room)


def test_a_cut_keeps_a_word_whole_where_there_is_room():
    [one, other] = split("abc " * 15 + "abcdef " + "abc " * 9, 16).texts
    assert one.endswith("abc ")
    assert other.startswith("abcdef ")


def test_a_cut_is_within_a_word_where_there_is_no_room():
    assert split("abc abcdef abc", 2).texts == ("abc abc", "def abc")


def test_a_window_ends_earlier_where_half_a_word_takes_more_tokens():
    def fits(window: str) -> bool:
        return len(pieces(window)) + window.startswith("def") <= 4

    text = "abcdefabcdefabcdef" * 3
    windows = split_text(text, [m.start() for m in re.finditer(r"\S{1,3}", text)], 4, fits)
    assert "".join(windows.texts) == text
    assert all(map(fits, windows.texts))
    assert not windows.truncated


@given(text=st.text(min_size=1, max_size=300), count=st.integers(1, MOST_WINDOWS))
def test_windows_by_bytes_lie_end_to_end(text: str, count: int):
    windows = split_bytes(text, count)
    assert "".join(windows) == text
    assert len(windows) <= count
    assert all(windows)


def test_windows_by_bytes_end_between_words():
    assert split_bytes("some words " * 20, 3) == (
        "some words " * 6 + "some ",
        "words " + "some words " * 6,
        "some words " * 7,
    )


def test_the_mean_weighs_a_window_by_its_place_and_its_length():
    one, other = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    assert mean_vector([one, other], ["aaaa", "bbbb"]) == pytest.approx([0.8**0.5, 0.2**0.5])
    assert mean_vector([one, other], ["aaaa", "b"]) == pytest.approx(
        [1 / (1 + 0.125**2) ** 0.5, 0.125 / (1 + 0.125**2) ** 0.5]
    )
    assert mean_vector([one, other], ["aaaa", "bbbb"]).dtype == np.float32


def test_there_is_a_mean_where_vectors_cancel_out():
    one = np.array([1, 0], dtype=np.float32)
    assert mean_vector([one, -one], ["a", "bb"]).tolist() == [1.0, 0.0]


# --- windows on their way -----------------------------------------------------------------------


async def entered(gated: GatedEncoder) -> None:
    assert await asyncio.to_thread(gated.entered.wait, 30)


async def test_each_window_of_a_query_has_the_prefix_and_those_of_a_document_have_none(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    gated.gate.set()
    await embedder.embed_query("a|b")
    await embedder.embed_documents(["c|d"])
    assert gated.seen == ["query: a", "query: b", "c", "d"]


async def test_a_long_text_is_read_once_and_then_comes_from_the_cache(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over(threads=3)
    gated.gate.set()
    first, again = await asyncio.gather(*(embedder.embed_query("a|b|c") for _ in range(2)))
    assert first == again == await embedder.embed_query("a|b|c")
    assert len(gated.seen) == 3


async def test_windows_of_one_text_are_read_at_the_same_time(
    gated: GatedEncoder, embedder_over: Make
):
    together = threading.Barrier(3, action=gated.gate.set)
    embed = gated.encode

    def meet(text: str, *, alone: bool = False) -> NDArray[np.float32]:
        together.wait(30)
        return embed(text, alone=alone)

    gated.encode = meet  # type: ignore[method-assign]
    await embedder_over(threads=3).embed_query("a|b|c")
    assert not together.broken


async def test_texts_are_split_on_the_embedders_own_threads(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    gated.gate.set()
    await embedder.embed_query("a|b")
    await embedder.embed_documents(["c|d", "e"])
    assert len(gated.split_on) == 3, "a window is not split again"
    assert {thread.name for thread in gated.split_on} == {"lot-embedding-0"}


async def test_a_window_that_fails_fails_its_text_once_and_ends_the_reading(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    gated.gate.set()
    bad, good = await asyncio.gather(
        embedder.embed_query("fails|fails|never"),
        embedder.embed_query("good"),
        return_exceptions=True,
    )
    assert isinstance(bad, EmbeddingFailedError)
    assert not isinstance(good, BaseException)
    assert sorted(gated.seen) == ["query: fails", "query: good"]
    with pytest.raises(EmbeddingFailedError):
        await embedder.embed_query("panics|b")


async def test_windows_that_nobody_waits_for_any_more_are_not_read(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    given_up = asyncio.create_task(embedder.embed_query("a|b|c"))
    await entered(gated)
    given_up.cancel()
    await asyncio.wait([given_up])
    wanted = asyncio.create_task(embedder.embed_query("d"))
    gated.gate.set()
    await wanted
    assert gated.seen == ["query: a", "query: d"]
    await embedder.embed_query("a|b|c")
    assert gated.seen[2:] == ["query: a", "query: b", "query: c"]


async def test_closing_finishes_a_text_that_is_read_in_windows(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over(threads=2)
    asked = asyncio.create_task(embedder.embed_documents(["a|b|c", "d|e"]))
    await entered(gated)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0)
    gated.gate.set()
    await closing
    assert len(await asked) == 2


def jobs(*names: str) -> list[Job]:
    loop = asyncio.get_running_loop()
    return [Job(key_of("document", name), name, loop) for name in names]


def taken(turns: Turns, count: int) -> list[str]:
    """Take some; split those named so in two."""
    names = []
    for _ in range(count):
        turn = turns.take()
        assert turn
        names.append(turn.text)
        if isinstance(turn, Job) and "long" in turn.text:
            turns.add_windows(turn, Windows((f"{turn.text}.1", f"{turn.text}.2"), truncated=False))
    return names


async def test_windows_take_the_turns_of_their_own_call():
    turns = Turns()
    turns.add_documents(jobs("long1", "long2", "i3"))
    turns.add_documents(jobs("save"))
    assert taken(turns, 8) == [
        *("long1", "save", "long1.1", "long1.2", "long2", "long2.1", "long2.2", "i3")
    ]


async def test_a_short_query_does_not_wait_for_all_windows_of_a_long_one():
    turns = Turns()
    turns.add_queries(jobs("long"))
    assert taken(turns, 1) == ["long"]
    turns.add_queries(jobs("short"))
    assert taken(turns, 3) == ["long.1", "short", "long.2"]


async def test_windows_are_given_out_after_closing_too():
    turns = Turns()
    turns.add_documents(jobs("long"))
    turns.close()
    assert taken(turns, 3) == ["long", "long.1", "long.2"]
    assert turns.take() is None


async def test_a_text_is_settled_once_whatever_its_other_windows_come_to():
    [job] = jobs("text")
    vector, error = np.array([1.0], dtype=np.float32), ValueError("no vector")
    failed = Reading(job, Windows(("a", "b", "c"), truncated=False))
    assert failed.put(0, vector) is None
    assert isinstance(failed.fail(error), EmbeddingFault)
    assert failed.fail(error) is None
    assert failed.put(1, vector) is None
    assert failed.put(2, vector) is None
    good = Reading(job, Windows(("a", "b"), truncated=True))
    assert good.put(1, vector) is None
    assert good.put(0, vector) == (vector, True)


async def test_a_window_knows_its_text():
    turns = Turns()
    [job] = jobs("long")
    turns.add_documents([job])
    taken(turns, 1)
    window = turns.take()
    assert isinstance(window, Window)
    assert window.job is job


# --- the test double ----------------------------------------------------------------------------


async def test_the_test_double_reads_as_many_windows_of_words():
    embedder = HashingEmbedder(max_words=10)
    most = 10 * MOST_WINDOWS
    whole, cut = await embedder.embed_documents(["word " * most, "word " * (most + 1)])
    assert not whole.truncated
    assert cut.truncated
    [long], halves = (
        await embedder.embed_documents(["a b c d e f g h i j k l"]),
        await embedder.embed_documents(["a b c d e f g h i j", "k l"]),
    )
    vectors = [np.array(half.vector, dtype=np.float32) for half in halves]
    assert long.vector == mean_vector(vectors, ["a b c d e f g h i j", "k l"]).tolist()


# --- the real model -----------------------------------------------------------------------------

FACT = (
    "The staging database listens on port 7341 behind the Frankfurt load balancer. To reach the "
    "staging database, open a tunnel to the load balancer and connect to that port with the "
    "read-only role. When the port is closed, the database service has not started: look at its "
    "log and restart it. The port of the staging database is never 5432, which is production's. "
    "Whoever changes the port of the staging database tells the release team before that."
)
ASKED = "Which port does the staging database listen on?"
PROSE = (
    "The gardener walked along the quiet river and counted the herons that stood in the reeds. "
    "In the evening there was bread, and somebody told the old story of the miller's daughter. "
)


def tokens_of(encoder: OnnxEncoder, text: str) -> int:
    whole = encoder._tokenizer.encode(text)
    parts = [whole, *whole.overflowing]
    return sum(part.special_tokens_mask.count(0) for part in parts)


@pytest.mark.model
async def test_a_fact_at_the_end_of_a_long_text_is_found(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    text = PROSE * 20 + FACT
    assert 700 < tokens_of(encoder, text) < 1020
    query = await fastembed_embedder.embed_query(ASKED)
    [read] = await fastembed_embedder.embed_documents([text])
    head = encoder.encode(text)
    assert np.dot(query.vector, read.vector) > np.dot(query.vector, head) + 0.05


@pytest.mark.model
async def test_the_vector_is_the_mean_of_the_windows_vectors(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    text = PROSE * 30
    prefix = fastembed_embedder.contract.query_prefix
    for before, made in (
        ("", (await fastembed_embedder.embed_documents([text]))[0]),
        (prefix, await fastembed_embedder.embed_query(text)),
    ):
        windows = encoder.split(before, text)
        assert windows
        assert len(windows.texts) == 3
        sizes = np.array([len(window) for window in windows.texts])
        weights = sizes / sizes.max() / np.array([1, 2, 3])
        mean = weights @ np.array([encoder.encode(before + text) for text in windows.texts])
        assert made.vector == pytest.approx((mean / np.linalg.norm(mean)).tolist(), abs=1e-6)
        assert not made.truncated


@pytest.mark.model
@given(
    text=st.lists(
        st.one_of(
            st.text(min_size=1, max_size=30),
            st.sampled_from(["unaffable", "数据库", "supercalifragilistic", "🙂", "각", "(x)=>{}"]),
        ),
        min_size=5,
        max_size=25,
    ),
    times=st.integers(40, 500),
    prefix=st.sampled_from(["", "Represent this sentence for searching relevant passages: "]),
)
def test_every_window_of_any_text_fits_the_model(
    encoder: OnnxEncoder, text: list[str], times: int, prefix: str
):
    whole = " ".join(text * times)[:40_000]
    windows = encoder.split(prefix, whole)
    if windows is None:
        assert not encoder._tokenizer.encode(prefix + whole).overflowing
        return
    joined = "".join(windows.texts)
    assert whole.startswith(joined)
    assert windows.truncated == (joined != whole)
    assert len(windows.texts) <= MOST_WINDOWS
    for window in windows.texts:
        assert not encoder._tokenizer.encode(prefix + window).overflowing


@pytest.mark.model
@pytest.mark.parametrize(
    ("count", "windows", "truncated"),
    [(511, 2, False), (1020, 2, False), (1021, 3, False), (4080, 8, False), (4081, 8, True)],
)
def test_the_number_of_windows_is_the_least_and_the_limit_is_exact(
    encoder: OnnxEncoder, count: int, windows: int, truncated: bool
):
    split = encoder.split("", "word " * count)
    assert split
    assert (len(split.texts), split.truncated) == (windows, truncated)


@pytest.mark.model
def test_a_window_of_a_query_leaves_room_for_the_prefix(encoder: OnnxEncoder):
    prefix = card_of(DEFAULT_MODEL).query_prefix
    assert encoder.split(prefix, "word " * 1004) == (("word " * 502,) * 2, False)


@pytest.mark.model
def test_prose_is_cut_between_words(encoder: OnnxEncoder):
    split = encoder.split("", PROSE * 40)
    assert split
    assert all(window.endswith(" ") for window in split.texts)


@pytest.mark.model
async def test_a_text_that_fits_has_the_very_vector_that_the_model_makes_of_it(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    texts = [PROSE, "word " * 510, "", " ", "数据库连接超时" * 70]
    made = await fastembed_embedder.embed_documents(texts)
    for text, embedding in zip(texts, made, strict=True):
        alone = encoder.encode(text)
        assert embedding.vector == alone.tolist()
        assert not embedding.truncated


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "truncated"),
    [
        pytest.param("x" * 60_000, False, id="one word"),
        pytest.param("数据库连接超时" * 300, False, id="CJK"),
        pytest.param("🙂" * 20_000, False, id="emoji without spaces"),
        pytest.param("🙂 " * 700, False, id="emoji"),
        pytest.param(" \n\t" * 20_000, False, id="white space"),
        pytest.param("\x01\x02\x1b\x7f" * 15_000, False, id="control characters"),
        pytest.param("ab\x01 \u200b" * 400, False, id="words and control characters"),
        pytest.param(" " * 300_000, True, id="more than is handed over"),
    ],
)
async def test_odd_long_texts_are_read(
    fastembed_embedder: FastembedEmbedder, text: str, truncated: bool
):
    query = await fastembed_embedder.embed_query(text)
    [document] = await fastembed_embedder.embed_documents([text])
    for made in (query, document):
        assert np.linalg.norm(made.vector) == pytest.approx(1.0, abs=1e-5)
        assert made.truncated == truncated


@pytest.mark.model
async def test_a_query_of_50000_characters_is_answered_and_what_was_left_out_is_said(
    fastembed_embedder: FastembedEmbedder,
):
    query = (PROSE * 300)[:50_000]
    made = await fastembed_embedder.embed_query(query)
    assert made.truncated
    assert made == await fastembed_embedder.embed_query(query + " and nobody reads this")


@pytest.mark.model
async def test_long_texts_at_once_have_the_vectors_that_each_has_alone(
    encoder: OnnxEncoder, fastembed_embedder: FastembedEmbedder
):
    texts = [f"{number} {PROSE * 15}" for number in range(4)]
    together = await asyncio.gather(
        fastembed_embedder.embed_documents(texts),
        fastembed_embedder.embed_documents([*reversed(texts), "short"]),
    )
    alone = FastembedEmbedder(encoder, fastembed_embedder.contract, threads=1, cache_entries=0)
    try:
        one_by_one = [(await alone.embed_documents([text]))[0] for text in texts]
    finally:
        await alone.close()
    assert together[0] == one_by_one
    assert together[1][:4] == one_by_one[::-1]
