"""What a recorder refuses before it gets anywhere near the stream."""

from datetime import UTC, datetime

import pytest
from either import Either
from google.protobuf import json_format
from lot_client import AsyncLotClient, LotClient
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent, EpisodeStatus
from scripted import Scripted


def nested(depth: int) -> dict:
    return {"x": nested(depth - 1)} if depth else {}


def in_itself() -> dict:
    data: dict = {}
    data["x"] = [data]
    return data


SUCCEEDED = EpisodeStatus.EPISODE_STATUS_SUCCEEDED


@pytest.mark.parametrize(
    ("event_type", "data", "text"),
    [
        ("", None, "event_type must not be empty"),
        ("x" * 257, None, "event_type must be at most 256 bytes"),
        ("ü" * 200, None, "event_type must be at most 256 bytes"),
        ("a", {"x": float("nan")}, "neither NaN nor infinity"),
        ("a", {"x": [1, {"y": float("inf")}]}, "neither NaN nor infinity"),
        ("a", {"x": ["y"] * 60_000}, "at most 262,144 bytes"),
        ("a", {str(n): n for n in range(30_000)}, "at most 262,144 bytes"),
        ("a", nested(17), "deep"),
        ("a", nested(40), "deep"),
        ("a", nested(900), "deep"),
        ("a", in_itself(), "deep"),
        ("a", {"x": [{"y": object()}]}, r"data\['x'\]\[0\]\['y'\] is of type object.*str\(\)"),
        ("a", {"x": b"\xff"}, r"data\['x'\] is of type bytes.*decode it"),
        ("a", {"x": {1: 2}}, r"data\['x'\] has the key 1, which is not a string"),
        ("a", {"x": {1, 2}}, "of type set"),
        ("a", ["x"], "data must be a dict, not list"),
        ("a", "x", "data must be a dict, not str"),
        (3, None, "event_type"),
    ],
)
async def test_an_event_that_breaks_the_contract_is_refused_alone(
    either: Either, server: Scripted, event_type: str, data: dict | None, text: str
):
    async with either(server.address) as client, client.recorder("A task") as recorder:
        await recorder.record("before")
        with pytest.raises((TypeError, ValueError), match=text):
            await recorder.record(event_type, data)
        await recorder.record("after")

    assert [event.event_type for event in server.stored] == ["before", "after"]


async def test_whatever_a_tool_printed_is_recorded(
    either: Either, address: str, namespace: str, client: AsyncLotClient
):
    long = "head" + "x" * 300_000 + "\udcfftail"
    async with (
        either(address, namespace=namespace) as recording,
        recording.recorder("A task") as recorder,
    ):
        await recorder.record("a\0", {"\0k": ["\0", {"x": "\udc80é"}]}, agent_role="\ud800")
        await recorder.record("b", {"tool": "cat", "out": long, "n": 1, "lines": ["y" * 900] * 200})
        await recorder.record("c", {"lines": ["y" * 3000] * 200})
        await recorder.record("d", {"error": ValueError("a\0b")})
        assert await recorder.flush(30.0) == 4
        assert recorder.stats.shortened == 2
        recorder.succeed("done \0", success_factors=["\ud800"])

    first, second, third, fourth = [
        event async for event in client.list_episode_events(recorder.episode_id)
    ]
    assert (first.event_type, first.agent_role) == (r"a\x00", r"\ud800")
    assert json(first) == {r"\x00k": [r"\x00", {"x": r"\udc80é"}]}
    found = json(second)
    head, note, tail = found["out"].split("\n")
    assert (found["tool"], found["n"], found["lines"]) == ("cat", 1, ["y" * 900] * 200)
    assert head.startswith("headx")
    assert tail.endswith(r"\udcfftail")
    left_out = int(note.removeprefix("[").removesuffix(" bytes left out]").replace(",", ""))
    assert len(head) + len(tail) + left_out == 300_000 + 4 + 6 + 4
    assert all("bytes left out" in line for line in json(third)["lines"])
    assert json(fourth) == {"error": {"type": "ValueError", "message": r"a\x00b"}}
    assert recorder.episode.summary == r"done \x00"
    assert list(recorder.episode.success_factors) == [r"\ud800"]


def json(event: EpisodeEvent) -> dict:
    return json_format.MessageToDict(event.data)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ({"metrics": {"a": float("nan")}}, r"metrics\['a'\] must be a finite number"),
        ({"metrics": {"a": float("-inf")}}, "finite"),
        ({"metrics": {"": 1.0}}, "metrics key must not be empty"),
        ({"metrics": {str(n): 1.0 for n in range(101)}}, "at most 100 items"),
        ({"reward": float("nan")}, "reward must be a finite number"),
        ({"reward": 2.0}, "reward must be from -1 to 1, is 2"),
        ({"summary": "x" * 70_000}, "summary must be at most 65,536 bytes"),
        ({"tools_used": ["a", "a"]}, "tools_used must not have duplicate items"),
        ({"tools_used": ["\u00e9", "e\u0301"]}, "tools_used must not have duplicate items"),
        ({"metrics": {"\u00e9": 1.0, "e\u0301": 2.0}}, "metrics must not have the same key twice"),
        ({"tools_used": ["a" * 257]}, r"tools_used\[0\] must be at most 256 bytes"),
        ({"tools_used": ["a"] * 101}, "at most 100 items"),
        ({"error_patterns": [""]}, "must not be empty"),
        ({"used_pattern_ids": ["not allowed"]}, r"used_pattern_ids\[0\] must match"),
        ({"used_episode_ids": ["x\n"]}, r"used_episode_ids\[0\] must match"),
        ({"approach": "x" * 1025}, "approach"),
        ({"end_time": datetime(2020, 1, 1, tzinfo=UTC)}, "before the episode's start_time"),
        ({"request_id": "r"}, "unknown arguments: request_id"),
        ({"error": {"message": "x"}}, "error"),
        ({"metrics": {"a": object()}}, "metrics"),
    ],
)
async def test_an_end_that_breaks_the_contract_is_refused_at_the_call(
    either: Either, server: Scripted, end: dict, text: str
):
    server.start_time = datetime(2026, 1, 1, tzinfo=UTC)
    async with either(server.address) as client, client.recorder("A task") as recorder:
        recorder.succeed("as before", tools_used=["git"])
        with pytest.raises((TypeError, ValueError), match=text):
            recorder.succeed(**end)
        if "error" not in end:
            with pytest.raises((TypeError, ValueError), match=text):
                recorder.fail("x", **end)

    [request] = server.ends
    assert (request.status, request.summary, request.tools_used) == (
        SUCCEEDED,
        "as before",
        ["git"],
    )


async def test_a_failure_takes_what_was_printed(either: Either, server: Scripted):
    async with either(server.address) as client, client.recorder("A task") as recorder:
        recorder.fail("first\0" + "x" * 100_000 + "last", tools_used=(tool for tool in ["git"]))

    [request] = server.ends
    message = request.error.message
    assert len(message.encode()) <= 64 * 1024
    assert message.startswith(r"first\x00")
    assert message.endswith("last")
    assert "bytes left out" in message
    assert request.tools_used == ["git"]


async def test_data_is_as_deep_as_the_server_takes_it(either: Either, address: str, namespace: str):
    deep: dict = {"x": 1}
    for _ in range(7):
        deep = {"x": [deep]}
    async with (
        either(address, namespace=namespace) as client,
        client.recorder("A task") as recorder,
    ):
        await recorder.record("a", {"x": deep})
        with pytest.raises(ValueError, match="nested at most 16 deep"):
            await recorder.record("a", {"x": [deep]})

    assert recorder.episode.event_count == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "pass a task"),
        ({"episode_id": "e", "category": "x"}, "existing episode takes no fields"),
        ({"task": "A task", "when_full": "LOSE"}, "BLOCK, DROP or SPILL"),
        ({"task": "A task", "when_full": "SPILL"}, "spill_path"),
        ({"task": "A task", "spill_path": "x"}, "spill_path"),
        ({"task": "A task", "max_batch_events": 1001}, "1 to 1,000"),
        ({"task": "A task", "max_buffer_events": 0}, "max_buffer_events"),
        ({"task": "A task", "heartbeat": 0}, "heartbeat"),
        ({"task": "A task", "colour": "red"}, "no field 'colour'"),
    ],
)
def test_what_cannot_be_meant_is_refused(server: Scripted, arguments: dict, text: str):
    refused = pytest.raises((TypeError, ValueError), match=text)
    with LotClient(server.address) as client, refused:
        client.recorder(**arguments)
