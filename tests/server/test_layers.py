"""Requests, failures and the log, as they pass the layers of the server."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import math
from typing import Any

import grpc
import grpc.aio
import pytest

from lot_grpc.domain.errors import PatternNotFoundError, StorageFullError, StoreUnavailableError
from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_service_pb2, pattern_service_pb2_grpc
from lot_grpc.server.call import current_call_id
from tests.server.doubles import Patterns, get_pattern
from tests.server.wire import SAVE, failure, save, saved, wire


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


# --- failures of servicers --------------------------------------------------------------------


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
        request = save() if method == "SavePattern" else get_pattern()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(it.patterns, method)(request)
        assert caught.value.code() is grpc.StatusCode.DATA_LOSS
        assert caught.value.details() == "as said"
        assert (await it.logged())["code"] == "DATA_LOSS"


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
        assert await it.patterns.GetPattern(get_pattern()) is not None
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


# --- the log ----------------------------------------------------------------------------------


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
