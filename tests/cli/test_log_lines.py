"""What a server logs of calls that fail: how much, and never a flood."""

from __future__ import annotations

import json

import grpc
import grpc.aio
import pytest

from lot_grpc.domain.errors import LotError, StorageFullError, StoreUnavailableError
from lot_grpc.log_lines import Background, Calls
from lot_grpc.logs import REPEATS_SECONDS, Repeats, configure_logging
from lot_grpc.pb.lot.v1.pattern_service_pb2 import GetPatternRequest
from lot_grpc.server.guards import Guards
from lot_grpc.server.status import TABLE
from tests.server.doubles import Patterns, Slow
from tests.server.keys import Keys
from tests.server.service import serving
from tests.server.wire import failure, save, until, wire

LINE_BYTES = 700
"""Of a failure that is no bug, the longest."""


@pytest.fixture
def logged(capsys):
    """Lines written since, each with its size."""
    configure_logging("info", "json")
    return lambda: [(json.loads(line), len(line)) for line in capsys.readouterr().err.splitlines()]


def failing(reason: str) -> LotError:
    error = LotError("something; do this next")
    error.reason = reason
    error.__cause__ = OSError("why it failed: " + "long " * 500)
    return error


@pytest.mark.parametrize("reason", TABLE)
async def test_only_a_bug_has_a_traceback_and_only_once(reason, logged):
    patterns = Patterns(failing(reason))
    async with wire(patterns) as it:
        for _ in range(20):
            await failure(it.patterns.SavePattern(save()))
        await until(lambda: len(it.log) == 20)
    calls = Calls()
    for record in it.log:
        calls(record)
    calls.end()
    lines = logged()
    assert len(lines) == 21
    (first, size), *again, (summary, _) = lines
    bug = reason == "INTERNAL"
    assert ("Traceback" in first.get("exception", "")) == bug
    assert bug or size < LINE_BYTES
    assert all("exception" not in line and size < LINE_BYTES for line, size in again)
    assert {line["level"] for line, _ in again} == {"info"}
    assert {line["call_id"] for line, _ in again} >= {record["call_id"] for record in it.log[1:]}
    assert (summary["level"], summary["times"], summary["reason"]) == (first["level"], 19, reason)
    callers = TABLE[reason].code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)
    assert ("cause" in first) == (not callers and not bug)


FAULTS = {
    "page token": lambda lot: lot.patterns.ListPatterns(page_token="bm9uZQ"),
    "damaged page token": lambda lot: lot.memories.ListMemories(page_token="\N{SNOWMAN}"),
    "cursor": lambda lot: anext(aiter(lot.memories.WatchChanges(after_cursor=b"none"))),
    "bad UTF-8": lambda lot: lot.raw("/lot.v1.PatternService/SavePattern")(b"\x0a\x02\xff\xfe"),
    "not found": lambda lot: lot.patterns.GetPattern(pattern_id="none"),
    "no such call": lambda lot: lot.raw("/lot.v1.PatternService/None")(b""),
    "store": lambda lot: lot.patterns.SavePattern(pattern={"task": "t"}),
}


@pytest.fixture
async def broken():
    """A service whose store is taken away by the fault that needs it."""
    async with serving() as lot:
        yield lot


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_is_to_be_expected_takes_one_short_line(broken, logged, fault):
    if fault == "store":
        await broken.own_services.runtime.stack.model.close()
    for _ in range(10):
        with pytest.raises((grpc.aio.AioRpcError, ValueError)):
            await FAULTS[fault](broken)
    await until(lambda: len(broken.log) >= 10)
    calls = Calls()
    for record in broken.log:
        calls(record)
    lines = logged()
    assert [line["level"] for line, _ in lines] == ["warning"] + ["info"] * (len(lines) - 1)
    assert all(size < LINE_BYTES and "exception" not in line for line, size in lines)


async def test_invented_names_of_callers_without_credentials_are_one_fault(logged):
    calls = Calls()
    names = [f"None{number}\x1b[31m" + "x" * 4000 for number in range(10)]
    async with wire(guards=Guards(authenticator=Keys())) as it:
        for name in names:
            with pytest.raises(grpc.aio.AioRpcError, match="credentials"):
                await it.raw(f"/lot.v1.PatternService/{name}")(b"")
        await until(lambda: len(it.log) == len(names))
    for record in it.log:
        calls(record)
    calls.end()
    (first, size), *again, (summary, _) = logged()
    assert [line["level"] for line, _ in again] == ["info"] * 9
    assert (summary["message"], summary["times"]) == ("the same again", 9)
    assert first["method"].startswith(r"PatternService.None0\x1b[31mxxx")
    assert size < LINE_BYTES


async def test_a_deadline_takes_one_short_line(logged):
    calls, request = Calls(), GetPatternRequest(pattern_id="p")
    async with wire(Slow()) as it:  # it never answers
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError):
                await it.patterns.GetPattern(request, timeout=0.1)
        await until(lambda: len(it.log) == 3)
    for record in it.log:
        calls(record)
    lines = logged()
    assert len(lines) == 3
    assert all(size < LINE_BYTES and "exception" not in line for line, size in lines)


def test_what_fails_beside_the_calls_is_said_once_a_minute(logged):
    background = Background()
    gone = StoreUnavailableError("the store is gone; start it")
    gone.__cause__ = OSError("connection refused")
    for _ in range(50):
        background("housekeeping failed", gone)
        background("housekeeping failed", StorageFullError(1, 2, "/data"))
        background("housekeeping failed", ValueError("a bug"))
    background.end()
    lines = [line for line, _ in logged()]
    assert [line.get("reason") for line in lines[:3]] == [
        "STORE_UNAVAILABLE",
        "STORAGE_FULL",
        "INTERNAL",
    ]
    assert lines[0]["cause"] == "OSError: connection refused"
    assert "exception" not in lines[0]
    assert "ValueError" in lines[2]["exception"]
    assert [line["times"] for line in lines[3:]] == [49, 49, 49]


def test_repeats_are_counted_for_a_minute_then_summed_up():
    now = 0.0
    sums = []
    repeats = Repeats(lambda key, more: sums.append((*key, more)), clock=lambda: now)
    assert [repeats.is_first(("a",)) for _ in range(3)] == [True, False, False]
    now = REPEATS_SECONDS / 2
    assert repeats.is_first(("b",))
    now = REPEATS_SECONDS
    assert repeats.is_first(("a",))
    assert sums == [("a", 2)]
    now = 10 * REPEATS_SECONDS
    assert repeats.is_first(("c",))
    assert sums == [("a", 2)], "what came once needs no sum"
    assert not repeats.is_first(("c",))
    repeats.end()
    assert sums == [("a", 2), ("c", 1)]
