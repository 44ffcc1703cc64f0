"""What a recorder refuses before it gets anywhere near the stream."""

import pytest
from either import Either
from lot_client import LotClient
from lot_client.pb.lot.v1.episode_pb2 import EpisodeStatus
from scripted import Scripted


def nested(depth: int) -> dict:
    return {"x": nested(depth - 1)} if depth else {}


SUCCEEDED = EpisodeStatus.EPISODE_STATUS_SUCCEEDED


@pytest.mark.parametrize(
    ("event_type", "data", "text"),
    [
        ("", None, "event_type must not be empty"),
        ("x" * 257, None, "event_type must be at most 256 bytes"),
        ("ü" * 200, None, "event_type must be at most 256 bytes"),
        ("a\0", None, "NUL"),
        ("a", {"x": float("nan")}, "neither NaN nor infinity"),
        ("a", {"x": [1, {"y": float("inf")}]}, "neither NaN nor infinity"),
        ("a", {"x": {"\0": 1}}, "NUL"),
        ("a", {"x": ["\0"]}, "NUL"),
        ("a", {"x": "y" * 300_000}, "at most 262,144 bytes"),
        ("a", nested(17), "deep"),
        ("a", nested(40), "deep"),
        ("a", {"x": object()}, "is of type"),
        ("a", {"x": "\ud800"}, "surrogates|UTF-8|utf-8"),
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
        ({}, "give a task"),
        ({"episode_id": "e", "category": "x"}, "nothing describes it anew"),
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
