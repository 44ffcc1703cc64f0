"""What callers are told, and what is repeated behind their back."""

import dataclasses
import inspect
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from cutting import Cutter
from lot_client import (
    AsyncChangeWatch,
    AsyncLotClient,
    AsyncRecorder,
    ChangeWatch,
    LotClient,
    LotError,
    Recorder,
    RecorderPolicy,
    RetryPolicy,
    fields,
)
from lot_client.pb.lot.v1.episode_service_pb2_grpc import (
    EpisodeServiceServicer,
    add_EpisodeServiceServicer_to_server,
)
from lot_client.recorder_fields import RecorderFields
from lot_client.retry import Attempts
from scripted import Scripted


async def test_an_unknown_pattern_is_told_by_reason_and_facts(
    client: AsyncLotClient, namespace: str
):
    with pytest.raises(LotError) as caught:
        await client.get_pattern("nowhere")

    assert caught.value.code is grpc.StatusCode.NOT_FOUND
    assert caught.value.reason == "PATTERN_NOT_FOUND"
    assert caught.value.metadata == {"namespace": namespace, "id": "nowhere"}
    assert caught.value.retry_after is None


async def test_all_broken_rules_are_told(client: AsyncLotClient):
    with pytest.raises(LotError) as caught:
        await client.save_pattern("", pattern_id="not allowed", confidence=2.0)

    fields = {violation.field for violation in caught.value.violations}
    assert caught.value.reason == "REQUEST_INVALID"
    assert fields == {"pattern.task", "pattern_id", "pattern.confidence"}
    said = str(caught.value)
    assert [said.count(f"{field}: ") for field in fields] == [1, 1, 1], said


async def test_the_error_of_a_batch_item_reads_like_any_other(client: AsyncLotClient):
    await client.save_pattern("A task", pattern_id="taken")
    batch = await client.batch_save_patterns(
        [
            {"pattern": {"task": "Other content"}, "pattern_id": "taken"},
            {"pattern": {"task": "A free id"}, "pattern_id": "free"},
        ]
    )
    error = LotError.from_status(batch.results[0].error)

    assert error.reason == "PATTERN_ID_IN_USE"
    assert error.code is grpc.StatusCode.ALREADY_EXISTS
    assert batch.results[1].response.created


async def test_a_stale_etag_is_not_repeated(client: AsyncLotClient):
    saved = await client.save_pattern("A task", pattern_id="p")
    await client.update_pattern("p", title="First", etag=saved.pattern.etag)
    with pytest.raises(LotError) as caught:
        await client.update_pattern("p", title="Second", etag=saved.pattern.etag)

    assert caught.value.reason == "ETAG_MISMATCH"


async def test_a_request_id_with_other_content_is_refused(client: AsyncLotClient):
    await client.save_pattern("A task", request_id="r")
    with pytest.raises(LotError) as caught:
        await client.save_pattern("Another task", request_id="r")

    assert caught.value.reason == "REQUEST_ID_REUSED"


async def test_a_write_whose_answer_is_lost_counts_once(cut_client: AsyncLotClient, cutter: Cutter):
    await cut_client.save_pattern("A task", pattern_id="p")
    cutter.lose_next_answer()
    [after] = (await cut_client.record_outcome("p", "SUCCESS")).patterns

    assert after.outcomes.usage_count == 1
    assert cutter.connections == 2


async def test_a_delete_whose_answer_is_lost_is_not_repeated(
    cut_client: AsyncLotClient, cutter: Cutter
):
    await cut_client.save_pattern("A task", pattern_id="p")
    cutter.lose_next_answer()
    with pytest.raises(LotError) as caught:
        await cut_client.delete_pattern("p")
    with pytest.raises(LotError, match="PATTERN_NOT_FOUND"):
        await cut_client.get_pattern("p")

    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


async def test_where_nothing_listens_the_error_says_so():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    async with AsyncLotClient(address, retry=RetryPolicy(attempts=2)) as client:
        with pytest.raises(LotError) as caught:
            await client.check_ready()

    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert caught.value.reason == ""


async def test_a_deadline_ends_the_tries(server: Scripted):
    server.starting = [lambda _: server.over.wait(30.0) and None]
    async with AsyncLotClient(server.address) as client:
        with pytest.raises(LotError) as caught:
            await client.using(deadline=0.05).start_episode("A task")

    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED


def overloaded(retry_after: float | None = None) -> LotError:
    return LotError(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", "OVERLOADED", retry_after=retry_after
    )


def clearing() -> LotError:
    code = grpc.StatusCode.FAILED_PRECONDITION
    return LotError(code, "being cleared", "NAMESPACE_CLEARING", retry_after=1.0)


def test_waits_grow_up_to_the_longest_and_end_with_the_last_try():
    attempts = Attempts(RetryPolicy(attempts=5, first_delay=1.0, max_delay=3.0), deadline=60.0)
    delays = [attempts.delay_after(overloaded(), safe=True) for _ in range(4)]

    for delay, most in zip(delays, [1.0, 2.0, 3.0, 3.0], strict=True):
        assert most / 2 <= delay <= most
    with pytest.raises(LotError):
        attempts.delay_after(overloaded(), safe=True)


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("lot_client.retry.time", self)

    def monotonic(self) -> float:
        return self.now


def last_error(attempts: Attempts, clock: Clock, error: LotError) -> LotError:
    """With which a call ends whose tries all fail like this."""
    try:
        while True:
            clock.now += attempts.delay_after(error, safe=True)
    except LotError as last:
        return last


@pytest.mark.parametrize(
    "error",
    [
        LotError(grpc.StatusCode.UNAVAILABLE, "gone"),
        LotError(grpc.StatusCode.CANCELLED, "CANCELLED"),
        overloaded(retry_after=1.0),
    ],
)
def test_repeats_last_until_the_deadline(monkeypatch: pytest.MonkeyPatch, error: LotError):
    clock = Clock(monkeypatch)
    last = last_error(Attempts(RetryPolicy(), deadline=30.0), clock, error)

    assert 1028.9 <= clock.now < 1030.0
    assert last.tries > 15


def test_the_server_may_ask_for_a_longer_wait_that_callers_spread():
    attempts = Attempts(RetryPolicy(first_delay=0.1), deadline=60.0)
    delays = {attempts.delay_after(overloaded(retry_after=7.0), safe=True) for _ in range(9)}

    assert all(7.0 <= delay <= 10.5 for delay in delays)
    assert len(delays) > 1


@pytest.mark.parametrize(
    ("error", "safe", "repeated"),
    [
        (overloaded(), False, True),
        (LotError(grpc.StatusCode.UNAVAILABLE, "gone"), True, True),
        (LotError(grpc.StatusCode.UNAVAILABLE, "gone"), False, False),
        (LotError(grpc.StatusCode.CANCELLED, "CANCELLED"), True, True),
        (LotError(grpc.StatusCode.CANCELLED, "CANCELLED"), False, False),
        (LotError(grpc.StatusCode.CANCELLED, "Channel closed!"), True, False),
        (LotError(grpc.StatusCode.INTERNAL, "RST_STREAM with error code 2"), True, True),
        (LotError(grpc.StatusCode.INTERNAL, "Exception deserializing response!"), True, False),
        (LotError(grpc.StatusCode.INTERNAL, "a bug, RST_STREAM", "INTERNAL"), True, False),
        (LotError(grpc.StatusCode.UNKNOWN, "Stream removed"), True, True),
        (LotError(grpc.StatusCode.UNAVAILABLE, "stopping", "SHUTTING_DOWN"), True, True),
        (LotError(grpc.StatusCode.UNAVAILABLE, "stopping", "SHUTTING_DOWN"), False, False),
        (clearing(), True, True),
        (clearing(), False, False),
        (LotError(grpc.StatusCode.ABORTED, "busy", "CONTENTION"), True, True),
        (LotError(grpc.StatusCode.ABORTED, "busy", "CONTENTION"), False, False),
        (LotError(grpc.StatusCode.ABORTED, "stale", "ETAG_MISMATCH"), True, False),
        (LotError(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", "STORAGE_FULL"), True, False),
        (LotError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large"), True, False),
        (LotError(grpc.StatusCode.DEADLINE_EXCEEDED, "late"), True, False),
        (overloaded(retry_after=600.0), True, False),
    ],
)
def test_only_what_may_succeed_in_time_is_repeated(error: LotError, safe: bool, repeated: bool):
    attempts = Attempts(RetryPolicy(), deadline=60.0)
    try:
        attempts.delay_after(error, safe=safe)
        again = True
    except LotError:
        again = False

    assert again is repeated


def test_both_clients_have_the_same_methods_and_arguments():
    def methods(client: type) -> dict[str, list[inspect.Parameter]]:
        return {
            name: list(inspect.signature(method).parameters.values())
            for name, method in inspect.getmembers(client, callable)
            if not name.startswith("_")
        }

    assert methods(AsyncLotClient) == methods(LotClient)
    assert methods(AsyncRecorder) == methods(Recorder)
    assert methods(AsyncChangeWatch) == methods(ChangeWatch)


def test_a_recorder_takes_every_field_of_its_policy():
    policy = {field.name for field in dataclasses.fields(RecorderPolicy)}
    episode = set(fields.EpisodeFields.__annotations__)

    assert set(RecorderFields.__annotations__) == policy | episode
    assert not policy & episode


def test_a_call_that_runs_when_its_client_is_closed_is_cancelled():
    asked, over = threading.Event(), threading.Event()

    class Slow(EpisodeServiceServicer):
        def GetEpisode(self, request, context):  # noqa: N802 - the contract's name
            asked.set()
            over.wait(30)

    server = grpc.server(ThreadPoolExecutor(1))
    add_EpisodeServiceServicer_to_server(Slow(), server)
    client = LotClient(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(client.get_episode, "e")
            assert asked.wait(30)
            client.close()
            with pytest.raises(LotError, match="Channel closed!") as caught:
                running.result(30)
    finally:
        over.set()
        server.stop(None)
    assert caught.value.code is grpc.StatusCode.CANCELLED
