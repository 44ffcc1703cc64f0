"""Sharing, cancelling, failing, closing: with an encoder that stops where the test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.embedding import workers
from lot_grpc.embedding.cache import key_of
from lot_grpc.embedding.fastembed import FastembedEmbedder
from lot_grpc.embedding.workers import Job, Turns
from lot_grpc.work import begin_work
from tests.embedding.conftest import GatedEncoder

Make = Callable[..., FastembedEmbedder]


async def entered(gated: GatedEncoder) -> None:
    assert await asyncio.to_thread(gated.entered.wait, 30)


async def test_a_repeated_text_is_computed_once(gated: GatedEncoder, embedder_over: Make):
    embedder = embedder_over()
    gated.gate.set()
    first = await embedder.embed_query("again")
    assert await embedder.embed_query("again") == first
    assert gated.seen == ["query: again"]


async def test_the_cache_is_bounded(gated: GatedEncoder, embedder_over: Make):
    embedder = embedder_over(cache_entries=2)
    gated.gate.set()
    await embedder.embed_documents(["a", "b", "c"])
    await embedder.embed_documents(["b", "a"])
    assert gated.seen == ["a", "b", "c", "a"], "a was dropped for c, b was kept"


async def test_texts_asked_for_at_once_share_one_computation(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over(threads=2, cache_entries=0)
    asked = [asyncio.create_task(embedder.embed_query("same")) for _ in range(20)]
    await entered(gated)
    gated.gate.set()
    assert len({tuple(embedding.vector) for embedding in await asyncio.gather(*asked)}) == 1
    assert gated.seen == ["query: same"]


async def test_cancelling_one_who_waits_leaves_the_other_its_vector(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    leaves, stays = (asyncio.create_task(embedder.embed_query("same")) for _ in range(2))
    await entered(gated)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    gated.gate.set()
    assert (await stays).vector == [11.0, 0.0]


async def test_a_text_that_nobody_waits_for_any_more_is_not_computed(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    running = asyncio.create_task(embedder.embed_query("running"))
    await entered(gated)
    given_up = asyncio.create_task(embedder.embed_documents(["one", "two"]))
    wanted = asyncio.create_task(embedder.embed_documents(["three"]))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    gated.gate.set()
    await asyncio.gather(running, wanted)
    assert gated.seen == ["query: running", "three"]


async def test_a_queued_text_is_computed_as_long_as_one_waits_for_it(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    running = asyncio.create_task(embedder.embed_query("running"))
    await entered(gated)
    leaves, stays = (asyncio.create_task(embedder.embed_query("same")) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    await asyncio.wait([leaves])
    gated.gate.set()
    await running
    assert (await asyncio.wait_for(stays, 30)).vector == [11.0, 0.0]


async def test_a_text_given_up_can_be_asked_for_again(gated: GatedEncoder, embedder_over: Make):
    embedder = embedder_over()
    first = asyncio.create_task(embedder.embed_query("text"))
    await entered(gated)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(embedder.embed_query("text"))
    await asyncio.sleep(0)
    gated.gate.set()
    assert (await second).vector == [11.0, 0.0]


@pytest.mark.parametrize("text", ["fails", "panics"])
async def test_a_failure_reaches_those_who_asked_for_that_text_and_no_others(
    gated: GatedEncoder, embedder_over: Make, text: str
):
    embedder = embedder_over()
    tasks = [asyncio.create_task(embedder.embed_query(each)) for each in (text, "good", text)]
    await entered(gated)
    gated.gate.set()
    bad, good, too = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(bad, EmbeddingFailedError)
    assert isinstance(too, EmbeddingFailedError)
    assert bad is not too
    assert type(bad.__cause__).__name__ in {"ValueError", "Panic"}
    assert text not in bad.message, "a message must not carry memory contents"
    assert not isinstance(good, BaseException)
    assert good.vector == [11.0, 0.0]


async def test_a_failure_is_not_remembered(gated: GatedEncoder, embedder_over: Make):
    embedder = embedder_over()
    gated.gate.set()
    for _ in range(2):
        with pytest.raises(EmbeddingFailedError):
            await embedder.embed_query("fails")
    assert len(gated.seen) == 2


async def test_one_bad_document_fails_its_call_and_leaves_others_alone(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    gated.gate.set()
    bad, good = await asyncio.gather(
        embedder.embed_documents(["one", "fails", "two"]),
        embedder.embed_documents(["three"]),
        return_exceptions=True,
    )
    assert isinstance(bad, EmbeddingFailedError)
    assert not isinstance(good, BaseException)


async def test_close_finishes_what_was_asked_for_and_refuses_what_comes_after(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    asked = asyncio.create_task(embedder.embed_documents(["one", "two", "three"]))
    await entered(gated)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0)
    with pytest.raises(EmbeddingFailedError, match="closed"):
        await embedder.embed_query("late")
    gated.gate.set()
    await closing
    assert len(await asked) == 3


async def test_characters_beyond_what_the_model_reads_are_cut_before_it(
    gated: GatedEncoder, embedder_over: Make
):
    embedder = embedder_over()
    gated.gate.set()
    exact, longer = await embedder.embed_documents(["a" * 1000, "a" * 1_000_000])
    assert gated.seen == ["a" * 1000]
    assert (exact.truncated, longer.truncated) == (False, True)


# --- whose turn it is ------------------------------------------------------------------------


async def test_background_work_leaves_threads_to_calls(gated: GatedEncoder, embedder_over: Make):
    embedder = embedder_over(threads=2)

    async def in_the_background() -> None:
        begin_work(background=True)
        await embedder.embed_documents(["one", "two", "three"])

    working = asyncio.create_task(in_the_background())
    await entered(gated)
    asked = asyncio.create_task(embedder.embed_query("now"))
    while "query: now" not in gated.seen:  # on the other thread
        await asyncio.sleep(0.01)
    assert gated.seen == ["one", "query: now"]
    gated.gate.set()
    await asyncio.gather(working, asked)
    assert gated.seen == ["one", "query: now", "two", "three"]


def jobs(*names: str) -> list[Job]:
    loop = asyncio.get_running_loop()
    return [Job(key_of("document", name), name, loop) for name in names]


def taken(turns: Turns, count: int) -> list[str]:
    return [job.text for job in (turns.take() for _ in range(count)) if job]


async def test_queries_go_before_documents():
    turns = Turns()
    turns.add_documents(jobs("d1", "d2"))
    turns.add_queries(jobs("q1", "q2"))
    assert taken(turns, 4) == ["q1", "q2", "d1", "d2"]


async def test_a_stream_of_queries_does_not_starve_documents():
    turns = Turns()
    turns.add_documents(jobs("d1", "d2"))
    turns.add_queries(jobs(*"abcdefghijklmnopqr"))
    order = taken(turns, 20)
    assert [order.index("d1"), order.index("d2")] == [8, 17]


async def test_a_single_save_does_not_wait_behind_an_import():
    turns = Turns()
    turns.add_documents(jobs("i1", "i2", "i3"))
    turns.add_documents(jobs("save"))
    assert taken(turns, 4) == ["i1", "save", "i2", "i3"]


def left_jobs(*names: str) -> list[Job]:
    """Jobs of writes whose callers have left."""
    begin_work().waiting = 0
    made = jobs(*names)
    begin_work()
    return made


async def test_a_save_does_not_wait_behind_writes_whose_callers_have_left():
    turns = Turns()
    for name in ("left1", "left2", "left3"):
        turns.add_documents(left_jobs(name))
    turns.add_documents(jobs("save"))
    assert taken(turns, 4) == ["save", "left1", "left2", "left3"]


async def test_saves_do_not_starve_a_write_whose_caller_has_left():
    turns = Turns()
    turns.add_documents(left_jobs("left"))
    for number in range(12):
        turns.add_documents(jobs(f"save{number}"))
    assert taken(turns, 13).index("left") == 8


async def test_a_write_that_somebody_waits_for_again_is_like_any_other():
    turns = Turns()
    [first] = left_jobs("repeated")
    turns.add_documents([first])
    turns.add_documents(left_jobs("left"))
    turns.add_documents(jobs("save"))
    first.join()
    assert taken(turns, 3) == ["repeated", "save", "left"]


async def test_a_closed_queue_gives_what_it_holds_and_then_nothing():
    turns = Turns()
    turns.add_queries(jobs("q"))
    turns.close()
    assert taken(turns, 1) == ["q"]
    assert turns.take() is None


# --- who may use idle cores ------------------------------------------------------------------


async def test_a_text_is_alone_when_nothing_runs_or_waits_beside_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(workers, "_ALONE_AFTER_SECONDS", 0.0)
    turns = Turns()
    turns.add_queries(jobs("q1"))
    turns.take()
    assert turns.alone()
    turns.add_documents(jobs("d1"))
    assert not turns.alone(), "one waits"
    turns.take()
    assert not turns.alone(), "one runs"
    turns.done()
    assert turns.alone()


async def test_texts_that_met_are_not_alone_right_afterwards(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "_ALONE_AFTER_SECONDS", 3600.0)
    turns = Turns()
    turns.add_queries(jobs("q1"))
    turns.take()
    assert turns.alone(), "at first none has met another"
    turns.add_queries(jobs("q2"))
    turns.take()
    assert not turns.alone()
    turns.done()
    assert not turns.alone()


async def test_only_a_text_that_is_alone_is_embedded_on_idle_cores(
    gated: GatedEncoder, embedder_over: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workers, "_ALONE_AFTER_SECONDS", 3600.0)
    embedder = embedder_over(threads=2)
    gated.gate.set()
    await embedder.embed_query("first")
    await embedder.embed_documents(["second", "third"])
    await embedder.embed_query("after")
    assert gated.alone[:1] == ["query: first"]
    assert "query: after" not in gated.alone


async def test_background_work_leaves_idle_cores_to_calls(
    gated: GatedEncoder, embedder_over: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workers, "_ALONE_AFTER_SECONDS", 0.0)
    embedder = embedder_over(threads=2)
    gated.gate.set()

    async def in_background() -> None:
        begin_work(background=True)
        await embedder.embed_documents(["a passage", "of|windows"])

    await asyncio.create_task(in_background())
    await embedder.embed_documents(["a call"])
    assert gated.alone == ["a call"]


async def test_a_text_that_fails_leaves_the_next_one_alone(
    gated: GatedEncoder, embedder_over: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workers, "_ALONE_AFTER_SECONDS", 0.0)
    embedder = embedder_over(threads=2)
    gated.gate.set()
    for text in ("fails", "panics"):
        with pytest.raises(EmbeddingFailedError):
            await embedder.embed_query(text)
    await embedder.embed_query("next")
    assert gated.alone == ["query: fails", "query: panics", "query: next"]
