"""Numbers in free-form JSON, in every field of the contract that holds it,"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.server.codec import values
from tests.server.examples import EXAMPLES, Place, example, method_of, path_of, places, prepare
from tests.server.service import Lot, new_namespace, serving
from tests.server.transfers import exported, imported, records_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOLE = {
    "port": 8080,
    "replicas": -4,
    "none": 0,
    "safe": 2**53 - 1,
    "big": 2**53 + 2,
    "atto": 1_500_000_000_000_000_000,
    "least": -(2**63),
}
OTHERS = {"share": 0.1, "half": -2.5, "minus": -0.0, "tiny": 5e-324, "beyond": 1e300, "yes": True}
NUMBERS: dict[str, Any] = {**WHOLE, **OTHERS, "deep": {"list": [WHOLE, [1, 0.5, None, "text"]]}}

BESIDE: dict[str, dict[str, Any]] = {
    "Action": {"tool": "t"},
    "LearningState": {"task_type": "t"},
    "ActionOption": {"name": "a"},
    "EpisodeEvent": {"event_type": "x"},
}
"""What a message must have beside its numbers."""

NOT_GIVEN_BACK = {"lot.v1.LearningState.features"}
"""Fields that no answer and no export holds."""


def numbers(kind: str) -> Any:
    given = Struct()
    given.update(NUMBERS)
    return given if kind == "google.protobuf.Struct" else Value(struct_value=given)


def kind_of(place: Place) -> str:
    kind = place.field.message_type
    return "" if kind is None else kind.full_name


FREE_FORM = [
    (name, place)
    for name in EXAMPLES
    for place in places(method_of(name).input_type)
    if kind_of(place) in {"google.protobuf.Struct", "google.protobuf.Value"}
    and name != "AdminService.Import"  # takes what an export gave, which is tested below
]
"""Every Struct and Value of every request."""


def messages_in(message: Any) -> Iterator[Any]:
    """A message and all in it, Structs in Structs too."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        entries = field.message_type.GetOptions().map_entry
        for inner in value.values() if entries else value if field.is_repeated else [value]:
            if isinstance(inner, Message):
                yield from messages_in(inner)


def same_to_the_bit(message: Any) -> bool:
    """Whether the numbers are somewhere in a message, each bit and sign of them."""
    wanted = numbers("google.protobuf.Struct").SerializeToString(deterministic=True)
    return any(
        isinstance(one, Struct) and one.SerializeToString(deterministic=True) == wanted
        for one in messages_in(message)
    )


async def send(lot: Lot, name: str, place: Place, request_id: str = "") -> list[Any]:
    """The answers to the example with the numbers in their place."""
    request = example(name, lot.namespace)
    place.put(request, numbers(kind_of(place)))
    if "update_mask" in request.DESCRIPTOR.fields_by_name:
        request.update_mask.paths.append(place.path.split(".")[1].removesuffix("[0]"))
    for message in messages_in(request):
        for field, value in BESIDE.get(message.DESCRIPTOR.name, {}).items():
            setattr(message, field, value)
        if "request_id" in message.DESCRIPTOR.fields_by_name:
            message.request_id = request_id
    if name.endswith("RecordEvents"):
        request.events[0].sequence = 1
    method = method_of(name)
    kind = method.output_type._concrete_class
    if method.client_streaming:
        call = lot.channel.stream_stream(path_of(name), response_deserializer=kind.FromString)
        return [one async for one in call(iter([request.SerializeToString()]))]
    call = lot.channel.unary_unary(path_of(name), response_deserializer=kind.FromString)
    return [await call(request.SerializeToString(), timeout=30)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Lot]:
    async with serving() as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def lot(server: Lot) -> Lot:
    prepared = server.on(new_namespace())
    await prepare(prepared)
    return prepared


every_field = pytest.mark.parametrize(
    ("name", "place"), FREE_FORM, ids=[f"{name}:{place.path}" for name, place in FREE_FORM]
)


@every_field
async def test_a_number_comes_back_as_it_was_and_whole_ones_are_stored_so(lot, name, place):
    answers = await send(lot, name, place)
    stored = await exported(lot)

    field = f"{place.field.containing_type.full_name}.{place.field.name}"
    assert any(map(same_to_the_bit, [*answers, *stored])) == (field not in NOT_GIVEN_BACK)
    rows = [one.stored_form.fields["row"].string_value for one in records_of(stored)]
    assert not [row for row in rows if "8080.0" in row or "1.5e+18" in row]


@every_field
async def test_a_request_that_an_earlier_version_took_can_be_repeated(
    lot, name, place, monkeypatch
):
    with monkeypatch.context() as earlier:
        earlier.setattr(values, "whole", float)
        await send(lot, name, place, request_id="r")
    stored = len(records_of(await exported(lot)))

    for answer in await send(lot, name, place, request_id="r"):
        assert "Status" not in [one.DESCRIPTOR.name for one in messages_in(answer)]
    assert len(records_of(await exported(lot))) == stored


async def test_what_an_earlier_version_stored_is_met_by_the_same_content(lot, monkeypatch):
    pattern = {
        "task": "start it",
        "actions": [{"tool": "run", "args": {"port": 8080, "id": 1.5e18}}],
    }
    saves = [
        (lot.patterns.SavePattern, {"pattern": pattern, "dedupe": "DEDUPE_EXACT"}),
        (lot.memories.PutPreference, {"key": "editor", "value": numbers("google.protobuf.Value")}),
        (
            lot.memories.CreateMemory,
            {"memory": {"content": "a port", "metadata": {"port": 8080}}, "dedupe": "DEDUPE_EXACT"},
        ),
    ]
    with monkeypatch.context() as earlier:
        earlier.setattr(values, "whole", float)
        before = [await save(**fields) for save, fields in saves]
    rows = [one.stored_form.fields["row"].string_value for one in records_of(await exported(lot))]
    assert [row for row in rows if "8080.0" in row]

    after = [await save(**fields) for save, fields in saves]
    assert [one.created for one in after] == [False] * 3
    assert not after[0].notices
    assert after[1].preference == before[1].preference
    assert not after[2].notices


async def test_a_prompt_says_numbers_as_people_write_them(lot):
    args = {"port": 8080, "times": 4, "id": 1.5e18, "share": 0.1}
    await lot.patterns.SavePattern(
        pattern={"task": "start it", "actions": [{"tool": "run", "args": args}]}
    )
    await lot.memories.PutPreference(key="port", value={"number_value": 8080})

    text = (await lot.memories.GetTaskContext(task="start it")).prompt_text
    assert 'run {"id": 1500000000000000000, "port": 8080, "share": 0.1, "times": 4}' in text
    assert ": 8080\n" in text


async def test_an_export_can_be_imported_to_the_bit(lot):
    for name, place in FREE_FORM:
        await send(lot, name, place)
    other = lot.on(new_namespace())
    messages = await exported(lot)
    await imported(other, messages)

    assert sum(map(same_to_the_bit, records_of(messages))) == sum(
        map(same_to_the_bit, records_of(await exported(other)))
    )
