"""What a recorder does about what the server says, or does not say."""

from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from either import Either, leave_by, until
from lot_client import AsyncLotClient, LotError, RetryPolicy
from lot_client.pb.lot.v1.episode_pb2 import EpisodeStatus
from scripted import Scripted, ends

SUCCEEDED = EpisodeStatus.EPISODE_STATUS_SUCCEEDED
FAILED = EpisodeStatus.EPISODE_STATUS_FAILED
RETRY = RetryPolicy(first_delay=0.001, max_delay=0.01)


async def record_and_flush(either: Either, server: Scripted, **options: Any) -> None:
    """Record, and wait until it is stored."""
    async with (
        either(server.address, retry=RETRY) as client,
        client.recorder("A task", **options) as recorder,
    ):
        await recorder.record("step")
        await recorder.flush()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.FAILED_PRECONDITION, "EPISODE_ENDED"),
        (grpc.StatusCode.NOT_FOUND, "EPISODE_NOT_FOUND"),
        (grpc.StatusCode.ABORTED, "WRITER_REPLACED"),
        (grpc.StatusCode.ALREADY_EXISTS, "EVENT_CONFLICT"),
        (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
    ],
)
async def test_what_cannot_pass_by_itself_is_raised_everywhere(
    either: Either, server: Scripted, code: grpc.StatusCode, reason: str
):
    server.answering.append(ends(code, reason))
    caught: list[LotError] = []
    async with either(server.address, retry=RETRY) as client:
        recorder = client.recorder("A task")
        await recorder.__aenter__()
        await recorder.record("step")
        for call in (recorder.flush, partial(recorder.record, "step"), recorder.flush):
            with pytest.raises(LotError) as failed:
                await call()
            caught.append(failed.value)
        assert recorder.state == "FAILED"
        with pytest.raises(LotError) as leaving:
            await recorder.__aexit__(None, None, None)

    for error in (*caught, leaving.value):
        assert (error.code, error.reason) == (code, reason)
    assert len(server.openings) == 1
    assert server.ends == []
    assert [event.event_type for event in recorder.unacknowledged] == ["step"]


async def test_an_error_of_the_recording_does_not_hide_that_of_the_agent(
    either: Either, server: Scripted
):
    server.answering.append(ends(grpc.StatusCode.FAILED_PRECONDITION, "EPISODE_ENDED"))
    with pytest.raises(KeyError) as caught:
        await leave_by(either, server.address, KeyError("x"))

    [note] = caught.value.__notes__
    assert "The recording of episode e-1 failed: EPISODE_ENDED" in note


async def test_its_own_error_on_the_way_out_has_no_note(either: Either, server: Scripted):
    server.answering.append(ends(grpc.StatusCode.FAILED_PRECONDITION, "EPISODE_ENDED"))
    with pytest.raises(LotError) as caught:
        await record_and_flush(either, server)

    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, ""),
        (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN"),
        (grpc.StatusCode.ABORTED, "STREAM_IDLE"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL"),
        (grpc.StatusCode.INTERNAL, ""),
        (grpc.StatusCode.CANCELLED, ""),
    ],
)
async def test_what_passes_by_itself_is_waited_out(
    either: Either, server: Scripted, code: grpc.StatusCode, reason: str
):
    server.answering += [ends(code, reason)] * 3
    still_open = ends(grpc.StatusCode.FAILED_PRECONDITION, "EPISODE_STREAM_OPEN")
    server.opening += [lambda _: None, still_open, lambda _: None, still_open]
    async with (
        either(server.address, retry=RETRY) as client,
        client.recorder("A task") as recorder,
    ):
        for n in range(5):
            await recorder.record("step", {"n": n})
            await recorder.flush()

    assert [event.data["n"] for event in server.stored] == list(range(5))
    assert recorder.stats.reconnects == 3
    assert recorder.stats.last_error is None
    takeover_policies = [opening.takeover_policy for opening in server.openings]
    assert takeover_policies == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("when_full", ["BLOCK", "SPILL"])
async def test_a_full_disk_of_the_server_is_waited_out(
    either: Either, server: Scripted, tmp_path: Path, when_full: str
):
    full = ends(grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
    server.starting = [full] * 2
    server.opening = [full] * 2
    server.answering = [full] * 10_000
    server.ending = [full] * 2
    options: dict[str, Any] = {"when_full": when_full, "max_delay": 0.0}
    if when_full == "SPILL":
        options |= {"spill_path": tmp_path / "spill", "max_buffer_events": 10}
    async with (
        either(server.address, retry=RETRY) as client,
        client.recorder("A task", **options) as recorder,
    ):
        for n in range(100):
            await recorder.record("step", {"n": n})
        await until(lambda: len(server.openings) > 10)
        away = recorder.stats
        with pytest.raises(LotError, match=r"the last error: .*STORAGE_FULL"):
            await recorder.flush(0.05)
        server.answering.clear()
        await recorder.flush(30.0)
        assert recorder.stats.last_error is None
        assert recorder.state == "RECORDING"

    assert away.last_error.reason == "STORAGE_FULL"
    assert away.recorded == 100
    assert [event.data["n"] for event in server.stored] == list(range(100))
    assert len(server.starts) == 3
    assert len({request.request_id for request in server.ends}) == 1
    assert len(server.ends) == 3


async def test_a_silent_server_is_left(either: Either, server: Scripted):
    server.answering.append(lambda _: server.over.wait(30.0) and None)
    async with (
        either(server.address, retry=RETRY, deadline=0.5) as client,
        client.recorder("A task") as recorder,
    ):
        await recorder.record("step")
        await recorder.flush()

    assert recorder.stats.reconnects == 1
    assert recorder.stats.last_error is None
    assert len(server.stored) == 1


async def test_an_idle_stream_is_kept_open_by_heartbeats(either: Either, server: Scripted):
    async with either(server.address) as client, client.recorder("A task", heartbeat=0.01):
        await until(lambda: len(server.messages) >= 3)

    assert all(not message.events for message in server.messages)
    assert len(server.openings) == 1


async def test_a_loop_that_does_nothing_but_record_lets_batches_go(server: Scripted):
    async with (
        AsyncLotClient(server.address) as client,
        client.recorder("A task", max_buffer_events=10**6) as recorder,
    ):
        for _ in range(50_000):
            await recorder.record("step")
            if server.messages:
                break
        assert server.messages


async def test_patience_ends_where_the_policy_says(either: Either, server: Scripted):
    gone = ends(grpc.StatusCode.UNAVAILABLE)
    server.answering.append(gone)
    server.opening += [lambda _: None] + [gone] * 1000
    with pytest.raises(LotError) as caught:
        await record_and_flush(either, server, reconnect_for=0.1)

    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


async def test_a_client_that_is_closed_too_early_is_told(either: Either, server: Scripted):
    async with either(server.address, retry=RETRY) as client:
        recorder = client.recorder("A task")
        await recorder.__aenter__()
    await until(lambda: recorder.state == "FAILED")
    with pytest.raises(LotError, match=r"(?i)closed"):
        await recorder.flush()
    with pytest.raises(LotError, match=r"(?i)closed"):
        await recorder.__aexit__(None, None, None)


async def test_who_wrote_meanwhile_keeps_the_episode(either: Either, server: Scripted):
    def another_writes(context) -> None:
        server.stored.append(server.stored[-1])
        ends(grpc.StatusCode.UNAVAILABLE)(context)

    server.answering.append(another_writes)
    with pytest.raises(LotError, match="another writer added events up to 2") as caught:
        await record_and_flush(either, server)

    assert caught.value.reason == "WRITER_REPLACED"


async def test_entering_says_why_it_cannot(either: Either, server: Scripted):
    server.opening.append(ends(grpc.StatusCode.NOT_FOUND, "EPISODE_NOT_FOUND"))
    server.opening += [ends(grpc.StatusCode.UNAVAILABLE)] * 1000
    async with either(server.address, retry=RETRY, deadline=0.3) as client:
        with pytest.raises(LotError) as unknown:
            await client.recorder(episode_id="nowhere").__aenter__()
        with pytest.raises(LotError, match="opening the stream took longer") as away:
            await client.recorder(episode_id="e-1").__aenter__()

    assert unknown.value.reason == "EPISODE_NOT_FOUND"
    assert "UNAVAILABLE" in str(away.value)


async def test_a_writer_that_was_replaced_while_it_wrote_stops_soon(server: Scripted):
    """Over and over, since grpc.aio forgets the reason in some of the cases."""
    refused = ends(grpc.StatusCode.FAILED_PRECONDITION, "EPISODE_STREAM_OPEN")
    reasons = set()
    async with AsyncLotClient(server.address, retry=RETRY) as client:
        for _ in range(30):
            server.stored.clear()
            server.opening = [lambda _: None] + [refused] * 10_000
            server.answering = [ends(grpc.StatusCode.ABORTED, "WRITER_REPLACED")]
            recorder = client.recorder("A task", max_batch_events=1, max_in_flight=1000)
            await recorder.__aenter__()
            try:
                for _ in range(1000):
                    await recorder.record("step", {"text": "x" * 2000})
                await recorder.flush()
            except LotError as error:
                reasons.add(error.reason)
            with pytest.raises(LotError):
                await recorder.__aexit__(None, None, None)
            if "EPISODE_STREAM_OPEN" in reasons:
                break

    assert reasons <= {"WRITER_REPLACED", "EPISODE_STREAM_OPEN"}
    assert reasons
