"""Turns, deadlines and bounds of the reranker, over a scorer that tests hold by a gate."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest

from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.embedding.pairs import Call, Turns
from lot_grpc.embedding.reranking import CrossEncoderReranker


class GatedScorer:
    """Scores nothing without a permit, and remembers what it was asked."""

    max_characters = 1000

    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)
        self.seen: list[str] = []
        self.loads = 0

    def load(self) -> GatedScorer:
        self.loads += 1
        return self

    def score(self, query: str, text: str) -> float:
        self.seen.append(f"{query}:{text}")
        assert self.permits.acquire(timeout=30)
        if "fails" in text:
            raise ValueError("no score for this")
        if "panics" in text:
            raise Panic("as a Rust extension does")
        return len(text) / 100

    def permit(self, count: int = 1000) -> None:
        self.permits.release(count)


class Panic(BaseException):
    """Like pyo3's PanicException, which is no Exception."""


@pytest.fixture
def gated() -> GatedScorer:
    return GatedScorer()


@pytest.fixture
async def reranker_over(gated: GatedScorer) -> AsyncIterator[Callable[..., CrossEncoderReranker]]:
    """Make a reranker over the gated scorer; one thread, so that order can be told."""
    made: list[CrossEncoderReranker] = []

    def make(threads: int = 1, most_waiting: int = 4096) -> CrossEncoderReranker:
        made.append(
            CrossEncoderReranker("fake", gated.load, threads=threads, most_waiting=most_waiting)
        )
        return made[-1]

    yield make
    gated.permit()
    for reranker in made:
        await reranker.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.001)


async def test_calls_take_turns_pair_by_pair(reranker_over, gated: GatedScorer):
    reranker = reranker_over()
    large = asyncio.create_task(reranker.score("a", ["1", "2", "3", "4", "5"], seconds=60))
    await until(lambda: gated.seen == ["a:1"])
    small = asyncio.create_task(reranker.score("b", ["1", "2"], seconds=60))
    await asyncio.sleep(0)  # The small call is queued.
    gated.permit()
    assert await small == [0.01, 0.01]
    assert await large == [0.01] * 5
    assert gated.seen[:5] == ["a:1", "a:2", "b:1", "a:3", "b:2"]


async def test_what_was_not_reached_in_time_is_none_and_what_runs_is_finished(
    reranker_over, gated: GatedScorer
):
    reranker = reranker_over()
    await reranker.load()
    gated.permit(2)
    call = asyncio.create_task(reranker.score("q", ["a", "bb", "ccc", "d", "e"], seconds=0.2))
    await until(lambda: len(gated.seen) == 3)
    await asyncio.sleep(0.3)
    assert not call.done(), "the third runs"
    gated.permit()
    assert await call == [0.01, 0.02, 0.03, None, None]
    assert len(gated.seen) == 3


async def test_one_who_never_got_a_turn_is_answered_at_its_deadline(
    reranker_over, gated: GatedScorer
):
    reranker = reranker_over()
    busy = asyncio.create_task(reranker.score("busy", ["x"], seconds=60))
    await until(lambda: len(gated.seen) == 1)
    assert await reranker.score("late", ["a", "b"], seconds=0.05) == [None, None]
    gated.permit()
    assert await busy == [0.01]
    assert await reranker.score("after", ["a"], seconds=60) == [0.01]
    assert gated.seen == ["busy:x", "after:a"]


async def test_no_pair_is_begun_after_its_deadline_even_when_the_event_loop_is_late():
    turns, call = Turns(), Call("q", ["a", "b"], deadline=time.monotonic() - 1)
    turns.add(call)
    turns.close()
    assert turns.take() is None
    async with asyncio.timeout(30):
        await call.finished.wait()
    assert call.scores == [None, None]


async def test_a_call_that_comes_when_the_threads_have_ended_does_not_wait_for_them():
    turns, call = Turns(), Call("q", ["a"], deadline=time.monotonic() + 60)
    turns.close()
    turns.add(call)
    async with asyncio.timeout(30):
        await call.finished.wait()
    assert call.scores == [None]


@pytest.mark.parametrize("seconds", [0, -1])
async def test_without_time_nothing_is_scored_and_nothing_loaded(
    reranker_over, gated: GatedScorer, seconds: float
):
    assert await reranker_over().score("q", ["a", "b"], seconds=seconds) == [None, None]
    assert (gated.loads, gated.seen) == (0, [])


async def test_a_cancelled_call_leaves_the_queue_and_the_others(reranker_over, gated: GatedScorer):
    reranker = reranker_over()
    gone = asyncio.create_task(reranker.score("gone", ["1", "2", "3"], seconds=60))
    await until(lambda: gated.seen == ["gone:1"])
    other = asyncio.create_task(reranker.score("other", ["1"], seconds=60))
    await asyncio.sleep(0)
    gone.cancel()
    with suppress(asyncio.CancelledError):
        await gone
    gated.permit()
    assert await other == [0.01]
    assert gated.seen == ["gone:1", "other:1"]


@pytest.mark.parametrize("text", ["fails", "panics"])
async def test_a_failure_ends_its_call_and_no_other(reranker_over, gated: GatedScorer, text: str):
    reranker = reranker_over()
    gated.permit()
    bad: object
    good: object
    bad, good = await asyncio.gather(
        reranker.score("bad", ["a", text, "b", "c"], seconds=60),
        reranker.score("good", ["a", "b", "c"], seconds=60),
        return_exceptions=True,
    )
    assert isinstance(bad, EmbeddingFailedError)
    assert bad.__cause__ is not None
    assert good == [0.01] * 3
    assert "bad:c" not in gated.seen
    assert await reranker.score("later", ["a"], seconds=60) == [0.01]


async def test_pairs_beyond_the_bound_are_not_reached(reranker_over, gated: GatedScorer):
    reranker = reranker_over(most_waiting=3)
    first = asyncio.create_task(reranker.score("a", ["1", "2"], seconds=60))
    await until(lambda: gated.seen == ["a:1"])
    second = asyncio.create_task(reranker.score("b", ["1", "2", "3"], seconds=60))
    await asyncio.sleep(0)
    assert await reranker.score("c", ["1"], seconds=60) == [None]
    gated.permit()
    assert await first == [0.01, 0.01]
    assert await second == [0.01, 0.01, None]
    assert await reranker.score("d", ["1", "2", "3"], seconds=60) == [0.01] * 3


async def test_a_call_that_ended_early_frees_its_room(reranker_over, gated: GatedScorer):
    reranker = reranker_over(most_waiting=3)
    busy = asyncio.create_task(reranker.score("busy", ["1"], seconds=60))
    await until(lambda: len(gated.seen) == 1)
    for _ in range(3):
        assert await reranker.score("late", ["1", "2", "3"], seconds=0.01) == [None] * 3
    after = asyncio.create_task(reranker.score("after", ["1", "2", "3"], seconds=60))
    await asyncio.sleep(0)
    gated.permit()
    assert await busy == [0.01]
    assert await after == [0.01] * 3


async def test_a_pair_that_comes_again_is_not_scored_again(reranker_over, gated: GatedScorer):
    reranker = reranker_over()
    gated.permit()
    assert await reranker.score("q", ["a", "bb"], seconds=60) == [0.01, 0.02]
    assert await reranker.score("q", ["ccc", "a", "bb", "d"], seconds=60) == [
        0.03,
        0.01,
        0.02,
        0.01,
    ]
    assert gated.seen == ["q:a", "q:bb", "q:ccc", "q:d"]
    await reranker.score("qa", ["", "b"], seconds=60)
    assert gated.seen[4:] == ["qa:", "qa:b"], "a pair is more than its letters"


async def test_the_model_is_loaded_once_for_all_who_wait(reranker_over, gated: GatedScorer):
    reranker = reranker_over(threads=2)
    gated.permit()
    calls = (reranker.score(f"q{n}", ["a", "b"], seconds=60) for n in range(8))
    assert await asyncio.gather(*calls) == [[0.01, 0.01]] * 8
    assert gated.loads == 1


async def test_loading_is_part_of_the_time_and_goes_on_when_it_is_over():
    gate = threading.Event()
    scorer = GatedScorer()
    scorer.permit()

    def load() -> GatedScorer:
        assert gate.wait(30)
        return scorer.load()

    reranker = CrossEncoderReranker("fake", load, threads=1)
    assert await reranker.score("q", ["a"], seconds=0.01) == [None]
    waiting = asyncio.create_task(reranker.score("gone", ["a"], seconds=60))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()
    assert await reranker.score("q", ["a"], seconds=60) == [0.01]
    assert (scorer.loads, scorer.seen) == (1, ["q:a"])
    await reranker.close()


async def test_close_finishes_what_was_asked_for_and_ends_the_threads(
    reranker_over, gated: GatedScorer
):
    reranker = reranker_over(threads=2)
    call = asyncio.create_task(reranker.score("q", ["a", "b", "c"], seconds=60))
    await until(lambda: len(gated.seen) == 2)
    closing = asyncio.create_task(reranker.close())
    await asyncio.sleep(0)
    with pytest.raises(EmbeddingFailedError, match="closed"):
        await reranker.score("q", ["a"], seconds=60)
    gated.permit()
    assert await call == [0.01] * 3
    await closing
    assert not [one for one in threading.enumerate() if one.name.startswith("lot-rerank")]


async def test_long_texts_are_cut_before_they_are_handed_over(reranker_over, gated: GatedScorer):
    gated.permit()
    assert await reranker_over().score("q", ["x" * 65536], seconds=60) == [10.0]
    assert gated.seen == ["q:" + "x" * 1000]
