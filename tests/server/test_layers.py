"""What a caller sees when a request is wrong, a servicer fails, or the server is full."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import asyncio
import math
from typing import Any

import grpc
import grpc.aio
import pytest

from lot_grpc.domain.errors import (
    EpisodeEndedError,
    PatternNotFoundError,
    StorageFullError,
    StoreUnavailableError,
)
from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.server.call import current_call_id
from tests.server.wire import SAVE, failure, save, saved, until, wire

EVENTS = episode_service_pb2.RecordEventsRequest


class Patterns:
    """Answers what it is told to, and keeps what reached it."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.raises = raises
        self.seen: list[Any] = []

    async def SavePattern(self, request, context):
        self.seen.append(request)
        if self.raises is not None:
            raise self.raises
        return saved(request.pattern_id)

    async def GetPattern(self, request, context):
        self.seen.append(request)
        if self.raises is not None:
            raise self.raises
        return pattern_service_pb2.GetPatternResponse()


def nested(depth: int) -> Any:
    request = save()
    value = request.pattern.metadata.fields["d"]
    for _ in range(depth - 1):
        value = value.struct_value.fields["d"]
    value.bool_value = True
    return request


# --- requests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"\x0a\x7fshort", "truncated"),
        (b"\xff\xff", "truncated"),
        (b"\x0a\x02\xff\xfe", "UTF-8"),
        (nested(60).SerializeToString(), "nested too deep"),
    ],
)
async def test_bytes_that_are_no_request_get_a_reason_and_the_server_lives(raw, cause):
    async with wire(Patterns()) as it:
        failed = await failure(it.raw()(raw))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_MALFORMED")
        assert failed.metadata == {"type": "lot.v1.SavePatternRequest"}
        assert cause in failed.message
        assert (await it.patterns.SavePattern(save())).created


async def test_everything_wrong_is_told_at_once():
    request = save("a\0b")
    request.pattern.metadata["n"] = math.nan
    request.pattern.confidence = math.inf
    request.pattern.kind = 99  # a number that the enum does not have
    request.pattern.labels["bad=key"] = "v"
    request.pattern.actions.add()
    request.pattern_id = "-"
    request.pattern.ttl.seconds = -1
    servicer = Patterns()
    async with wire(servicer) as it:
        failed = await failure(it.patterns.SavePattern(request))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
        assert failed.fields == {
            "pattern.task": "text.nul",
            "pattern.confidence": "number.finite",
            "pattern.metadata.n": "number.finite",
            "pattern.kind": "enum.defined_only",
            'pattern.labels["bad=key"]': "label.key.characters",
            "pattern.actions[0].tool": "string.min_len",
            "pattern.ttl": "duration.gt",
            "pattern_id": "string.pattern",
        }
        assert failed.metadata["violations"] == "8"
        assert servicer.seen == []


async def test_a_message_level_rule_names_its_field():
    async with wire(Patterns()) as it:
        failed = await failure(it.patterns.SavePattern(save("")))
        assert failed.fields == {"pattern.task": "pattern.task.required"}
        failed = await failure(it.patterns.SavePattern(type(save())()))
        assert failed.fields == {"pattern": "required"}


async def test_a_struct_may_nest_sixteen_deep_and_no_more():
    async with wire(Patterns()) as it:
        assert await it.patterns.SavePattern(nested(16))
        failed = await failure(it.patterns.SavePattern(nested(17)))
        assert list(failed.fields.values()) == ["struct.depth"]


async def test_twenty_violations_are_listed_and_all_are_counted():
    request = save()
    for _ in range(25):
        request.pattern.actions.add()
    async with wire(Patterns()) as it:
        failed = await failure(it.patterns.SavePattern(request))
        assert len(failed.fields) == 20
        assert failed.metadata["violations"] == "25"
        assert "(and 24 more)" in failed.message


async def test_a_large_error_arrives_whole():
    request = save()
    for index in range(25):
        request.pattern.labels["é" * 60 + "=" + str(index)] = "x" * 300
    async with wire(Patterns()) as it:
        for _ in range(20):  # metadata that is too large would be refused at random
            failed = await failure(it.patterns.SavePattern(request))
            assert failed.metadata["violations"] == "50"
            assert failed.size < 6000


async def test_a_text_of_10_mb_is_refused_with_a_reason():
    async with wire(Patterns()) as it:
        failed = await failure(it.patterns.SavePattern(save("x" * 10_000_000)))
        assert failed.fields == {"pattern.task": "string.max_bytes"}


async def test_a_message_over_the_limit_is_refused_by_core_and_the_server_lives():
    async with wire(Patterns(), max_message_bytes=100_000) as it:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await it.patterns.SavePattern(save("x" * 200_000))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "larger than max" in (caught.value.details() or "")
        assert await it.patterns.SavePattern(save())


# --- failures of servicers ----------------------------------------------------------------------


async def test_an_error_of_the_domain_is_told_as_it_is():
    async with wire(Patterns(PatternNotFoundError("default", "p-1"))) as it:
        request = pattern_service_pb2.GetPatternRequest(pattern_id="p-1")
        failed = await failure(it.patterns.GetPattern(request))
        assert (failed.code, failed.reason) == ("NOT_FOUND", "PATTERN_NOT_FOUND")
        assert failed.details["ResourceInfo"].resource_name == "p-1"
        record = await it.logged()
        assert record["reason"] == "PATTERN_NOT_FOUND"
        assert "error" not in record


async def test_an_error_in_a_task_group_is_told_as_it_is():
    group = ExceptionGroup("tasks", [StorageFullError(1, 2, "/data")])
    async with wire(Patterns(group)) as it:
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "STORAGE_FULL")


@pytest.mark.parametrize("error", [ValueError("secret-dsn"), KeyError("secret-dsn")])
async def test_an_unknown_error_shows_a_call_id_only_and_is_logged_whole(error):
    async with wire(Patterns(error)) as it:
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("INTERNAL", "INTERNAL")
        assert "secret" not in str(failed)
        record = await it.logged()
        assert record["call_id"] == failed.call_id == failed.metadata["call_id"]
        assert record["error"] is error
        assert record["level"] == "error"


async def test_the_cause_of_an_unreachable_store_is_logged_but_not_told():
    error = StoreUnavailableError("the store cannot be reached; retry")
    error.__cause__ = OSError("secret host")
    async with wire(Patterns(error)) as it:
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        assert failed.details["RetryInfo"].retry_delay.seconds == 1
        assert "secret" not in str(failed)
        assert (await it.logged())["error"] is error


async def test_an_answer_of_the_wrong_type_is_an_internal_error():
    class Wrong(Patterns):
        async def SavePattern(self, request, context):
            return pattern_service_pb2.GetPatternResponse()

        async def GetPattern(self, request, context):
            return None

    async with wire(Wrong()) as it:
        assert (await failure(it.patterns.SavePattern(save()))).reason == "INTERNAL"
        request = pattern_service_pb2.GetPatternRequest(pattern_id="p")
        assert (await failure(it.patterns.GetPattern(request))).reason == "INTERNAL"


@pytest.mark.parametrize("method", ["SavePattern", "GetPattern"])
async def test_a_servicer_may_abort_by_itself(method):
    class Aborts(Patterns):
        async def SavePattern(self, request, context):
            await context.abort(grpc.StatusCode.DATA_LOSS, "as said")

        GetPattern = SavePattern

    async with wire(Aborts()) as it:
        request = save() if method == "SavePattern" else _get()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(it.patterns, method)(request)
        assert caught.value.code() is grpc.StatusCode.DATA_LOSS
        assert caught.value.details() == "as said"
        assert (await it.logged())["code"] == "DATA_LOSS"


def _get() -> Any:
    return pattern_service_pb2.GetPatternRequest(pattern_id="p")


@pytest.mark.parametrize(
    ("stub", "method", "request_"),
    [
        ("patterns", "DistillPatterns", pattern_service_pb2.DistillPatternsRequest()),
        ("patterns", "DeletePattern", pattern_service_pb2.DeletePatternRequest()),
        ("episodes", "GetEpisode", episode_service_pb2.GetEpisodeRequest()),
    ],
)
async def test_an_rpc_without_a_method_names_itself(stub, method, request_):
    async with wire(Patterns()) as it:
        failed = await failure(getattr(getattr(it, stub), method)(request_))
        assert (failed.code, failed.reason) == ("UNIMPLEMENTED", "NOT_IMPLEMENTED")
        service = "PatternService" if stub == "patterns" else "EpisodeService"
        assert failed.metadata == {"capability": f"{service}.{method}"}
        assert "GetServerInfo.capabilities" in failed.message


async def test_the_generated_base_class_implements_nothing():
    class Inherits(pattern_service_pb2_grpc.PatternServiceServicer):
        async def GetPattern(self, request, context):
            return pattern_service_pb2.GetPatternResponse()

    servicer = Inherits()  # type: ignore[abstract] # only the stub file says so
    async with wire(servicer) as it:
        assert await it.patterns.GetPattern(_get()) is not None
        failed = await failure(it.patterns.SavePattern(save()))
        assert failed.metadata == {"capability": "PatternService.SavePattern"}


async def test_streams_without_a_method_name_themselves():
    async with wire() as it:
        replay = it.episodes.ReplayEpisode(episode_service_pb2.ReplayEpisodeRequest())
        assert (await failure(replay.read())).metadata == {
            "capability": "EpisodeService.ReplayEpisode"
        }
        record = it.episodes.RecordEvents()
        assert (await failure(record.read())).metadata == {
            "capability": "EpisodeService.RecordEvents"
        }


async def test_an_rpc_of_a_later_contract_gets_a_reason_too():
    async with wire(Patterns()) as it:
        failed = await failure(it.raw("/lot.v1.PatternService/Foresee")(b""))
        assert failed.metadata == {"capability": "PatternService.Foresee"}
        failed = await failure(it.raw("/lot.v2.OracleService/Ask")(b"\xff"))
        assert failed.metadata == {"capability": "OracleService.Ask"}
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await it.raw("/other.Service/Ask")(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- the log ------------------------------------------------------------------------------------


async def test_one_line_is_logged_for_each_call_and_never_contents():
    async with wire(Patterns()) as it:
        request = save("a secret task")
        request.namespace = "team"
        call = it.patterns.SavePattern(request)
        await call
        trailing = dict(await call.trailing_metadata())
        record = await it.logged()
        assert record.pop("duration_ms") >= 0
        assert record == {
            "level": "info",
            "method": "PatternService.SavePattern",
            "code": "OK",
            "reason": "",
            "call_id": trailing["lot-call-id"],
            "namespace": "team",
        }
        await failure(it.raw()(b"\xff"))
        record = await it.logged(2)
        assert (record["code"], record["level"]) == ("INVALID_ARGUMENT", "warning")


async def test_a_log_that_fails_does_not_fail_the_call():
    from lot_grpc.server.build import build_server
    from tests.server.wire import PATTERNS

    def broken(record):
        raise RuntimeError("disk full")

    server = build_server({PATTERNS: Patterns()}, log=broken)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert await channel.unary_unary(SAVE)(save().SerializeToString())
        assert (await failure(channel.unary_unary(SAVE)(b"\xff"))).reason == "REQUEST_MALFORMED"
    await server.stop(0)


async def test_logs_inside_a_call_can_name_it():
    class Names(Patterns):
        async def SavePattern(self, request, context):
            return saved(current_call_id.get())

    async with wire(Names()) as it:
        answer = await it.patterns.SavePattern(save())
        assert answer.pattern.pattern_id == (await it.logged())["call_id"]
        assert current_call_id.get() == ""


# --- leaving early ------------------------------------------------------------------------------


class Slow(Patterns):
    """Saves and reads that take until ``go``; says what became of them."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.begun = 0
        self.written: list[str] = []
        self.cancelled = 0

    async def SavePattern(self, request, context):
        self.begun += 1
        await self.go.wait()
        self.written.append(request.pattern_id)
        if request.pattern_id == "boom":
            raise ValueError("boom")
        return saved(request.pattern_id)

    async def GetPattern(self, request, context):
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return pattern_service_pb2.GetPatternResponse()


async def _leave(it: Any, method: str, request: Any, how: str, servicer: Slow) -> None:
    if how == "deadline":
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(it.patterns, method)(request, timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        call = getattr(it.patterns, method)(request)
        await until(lambda: servicer.begun == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


@pytest.mark.parametrize("how", ["deadline", "cancel"])
@pytest.mark.parametrize("pattern_id", ["p-1", "boom"])
async def test_a_write_is_finished_though_its_caller_has_left(how, pattern_id):
    servicer = Slow()
    async with wire(servicer) as it:
        request = save()
        request.pattern_id = pattern_id
        await _leave(it, "SavePattern", request, how, servicer)
        await until(lambda: it.log)
        # At its deadline a client cancels too, and that may come before the server's timer.
        left = {"CANCELLED"} if how == "cancel" else {"CANCELLED", "DEADLINE_EXCEEDED"}
        assert it.log[0]["code"] in left
        assert it.server.calls_in_flight == 1
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.written == [pattern_id]
        late = await it.logged(2)
        assert late["late"] is True
        assert late["call_id"] == it.log[0]["call_id"]
        assert (late["code"], "error" in late) == (
            ("INTERNAL", True) if pattern_id == "boom" else ("OK", False)
        )


@pytest.mark.parametrize("how", ["deadline", "cancel"])
async def test_a_read_ends_when_its_caller_leaves(how):
    servicer = Slow()
    async with wire(servicer) as it:
        await _leave(it, "GetPattern", _get(), how, servicer)
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.cancelled == 1
        await until(lambda: it.log)
        assert it.log[0]["code"] in {"CANCELLED", "DEADLINE_EXCEEDED"}


async def test_a_call_over_the_servers_time_is_told_so_and_its_write_goes_on():
    servicer = Slow()
    async with wire(servicer, max_call_seconds=0.05) as it:
        failed = await failure(it.patterns.SavePattern(save()))
        assert (failed.code, failed.reason) == ("DEADLINE_EXCEEDED", "CALL_TIMEOUT")
        assert failed.metadata == {"limit_seconds": "0.05"}
        assert "may have been applied" in failed.message
        failed = await failure(it.patterns.GetPattern(_get()))
        assert failed.reason == "CALL_TIMEOUT"
        assert servicer.cancelled == 1
        assert it.server.calls_in_flight == 1
        servicer.go.set()
        await until(lambda: servicer.written)


async def test_a_servicers_own_timeout_is_not_taken_for_the_servers():
    async with wire(Patterns(TimeoutError("of the store"))) as it:
        assert (await failure(it.patterns.SavePattern(save()))).reason == "INTERNAL"


async def test_one_call_too_many_is_refused_and_the_next_is_taken():
    servicer = Slow()
    async with wire(servicer, max_concurrent_calls=2) as it:
        running = [asyncio.ensure_future(_await(it.patterns.SavePattern(save()))) for _ in "ab"]
        await until(lambda: servicer.begun == 2)
        failed = await failure(it.patterns.GetPattern(_get()))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert failed.metadata == {"limit": "2"}
        assert failed.details["RetryInfo"].retry_delay.seconds == 1
        servicer.go.set()
        await asyncio.gather(*running)
        assert await it.patterns.GetPattern(_get())


async def test_writes_without_a_caller_count_as_running():
    servicer = Slow()
    async with wire(servicer, max_concurrent_calls=1) as it:
        await _leave(it, "SavePattern", save(), "cancel", servicer)
        await until(lambda: it.log)
        assert (await failure(it.patterns.SavePattern(save()))).reason == "OVERLOADED"
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert await it.patterns.SavePattern(save())


async def _await(call: Any) -> Any:
    return await call


# --- streams ------------------------------------------------------------------------------------


class Episodes:
    """Acknowledges what it is sent; a write takes until ``go``."""

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at
        self.go = asyncio.Event()
        self.go.set()
        self.begun: list[int] = []
        self.stored: list[int] = []
        self.ended = ""

    async def RecordEvents(self, request_iterator, context):
        try:
            async for request in request_iterator:
                last = request.events[-1].sequence if request.events else 0
                self.begun.append(last)
                await self.go.wait()
                self.check(last)
                self.stored.append(last)
                yield episode_service_pb2.RecordEventsResponse(last_sequence=last)
            self.ended = "half-closed"
        except BaseException as error:
            self.ended = type(error).__name__
            raise

    def check(self, last: int) -> None:
        if last == self.fails_at:
            raise EpisodeEndedError("e-1", "FAILED", "no more events")

    async def ReplayEpisode(self, request, context):
        try:
            for _ in range(3):
                yield episode_service_pb2.ReplayEpisodeResponse()
            if request.follow:
                await asyncio.Event().wait()
            if request.speed == 9:
                raise ValueError("secret")
            self.ended = "done"
        finally:
            self.ended = self.ended or "closed"


def batch(*sequences: int) -> Any:
    request = EVENTS(episode_id="e-1")
    for sequence in sequences:
        request.events.add(sequence=sequence, event_type="step")
    return request


async def test_a_stream_carries_batches_both_ways():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents(iter([batch(), batch(1, 2), batch(3)]))
        assert [answer.last_sequence async for answer in call] == [0, 2, 3]
        assert servicer.ended == "half-closed"
        assert await call.code() is grpc.StatusCode.OK
        await until(lambda: it.server.calls_in_flight == 0)
        assert (await it.logged())["method"] == "EpisodeService.RecordEvents"


async def test_a_wrong_message_ends_the_stream_with_its_violations():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        bad = batch(2, -1)
        bad.events[0].data["n"] = math.inf
        await call.write(bad)
        failed = await failure(call.read())
        assert failed.reason == "REQUEST_INVALID"
        assert failed.fields == {
            "events[0].data.n": "number.finite",
            "events[1].sequence": "int64.gte",
        }
        assert servicer.stored == [1]
        assert servicer.ended == "RequestInvalidError"


async def test_malformed_bytes_in_a_stream_get_a_reason():
    async with wire(episodes=Episodes()) as it:
        call: Any = it.channel.stream_stream("/lot.v1.EpisodeService/RecordEvents")()
        await call.write(b"\x0a\x01\xff")
        assert (await failure(call.read())).reason == "REQUEST_MALFORMED"


async def test_errors_in_streams_are_told_like_others():
    async with wire(episodes=Episodes(fails_at=2)) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.write(batch(2))
        assert (await call.read()).last_sequence == 1
        failed = await failure(call.read())
        assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e", speed=9)
        replay = it.episodes.ReplayEpisode(request)
        for _ in range(3):
            await replay.read()
        failed = await failure(replay.read())
        assert failed.reason == "INTERNAL"
        assert "secret" not in str(failed)


async def test_a_cancelled_reading_stream_closes_its_servicer():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        request = episode_service_pb2.ReplayEpisodeRequest(episode_id="e", follow=True)
        call = it.episodes.ReplayEpisode(request)
        for _ in range(3):
            await call.read()
        call.cancel()
        await until(lambda: servicer.ended == "closed")
        await until(lambda: it.server.calls_in_flight == 0)
        assert (await it.logged())["code"] == "CANCELLED"


async def test_a_stream_of_writes_finishes_the_batch_it_is_in_when_its_caller_leaves():
    servicer = Episodes()
    servicer.go.clear()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.write(batch(2))
        await until(lambda: servicer.begun == [1])
        call.cancel()
        await until(lambda: it.log)
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.stored == [1], "the batch after it is not begun"
        assert servicer.ended in {"GeneratorExit", "CancelledError"}
        late = await it.logged(2)
        assert (late["code"], late["late"]) == ("CANCELLED", True)


async def test_a_caller_that_leaves_in_the_middle_of_answers_is_no_fault_of_the_server():
    class Talks:
        async def RecordEvents(self, request_iterator, context):
            async for _ in request_iterator:
                while True:
                    yield episode_service_pb2.RecordEventsResponse()

        async def ReplayEpisode(self, request, context):
            while True:
                yield episode_service_pb2.ReplayEpisodeResponse()

    async with wire(episodes=Talks()) as it:
        for _ in range(30):
            calls = [
                it.episodes.RecordEvents(iter([batch(1)])),
                it.episodes.ReplayEpisode(episode_service_pb2.ReplayEpisodeRequest(episode_id="e")),
            ]
            for call in calls:
                await call.read()
                call.cancel()
        await until(lambda: it.server.calls_in_flight == 0)
        assert {record["code"] for record in it.log} == {"CANCELLED"}


async def test_a_stream_that_waits_for_its_caller_ends_when_the_caller_leaves():
    servicer = Episodes()
    async with wire(episodes=servicer) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        assert (await call.read()).last_sequence == 1
        call.cancel()
        await until(lambda: it.server.calls_in_flight == 0)
        assert servicer.stored == [1]
        assert servicer.ended == "CancelledError", "not taken for the end of the stream"


async def test_one_stream_too_many_is_refused():
    async with wire(Patterns(), Episodes(), max_streams=1) as it:
        call = it.episodes.RecordEvents()
        await call.write(batch(1))
        await call.read()
        failed = await failure(it.episodes.RecordEvents().read())
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert await it.patterns.SavePattern(save()), "unary calls have a limit of their own"
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        again = it.episodes.RecordEvents()
        await again.write(batch(1))
        assert (await again.read()).last_sequence == 1


async def test_no_reading_task_is_left_when_streams_are_over():
    from lot_grpc.server import streams

    servicer = Episodes(fails_at=1)
    async with wire(episodes=servicer) as it:
        for _ in range(3):
            servicer.go.clear()
            servicer.begun.clear()
            call = it.episodes.RecordEvents()
            for sequence in (1, 2, 3):
                await call.write(batch(sequence))
            await until(lambda: servicer.begun)
            await asyncio.sleep(0.02)  # the second message is read ahead meanwhile
            servicer.go.set()
            await failure(call.read())
        await until(lambda: not streams._pumps)
