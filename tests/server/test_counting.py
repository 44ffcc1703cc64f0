"""Lists are counted on the bytes: nothing is parsed or validated of a request with too many items.

Every list of every request is found by walking the descriptors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc.aio
import protovalidate
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.errors import LimitExceededError, RequestInvalidError, RequestMalformedError
from lot_grpc.server import checking, counting
from lot_grpc.server.checking import Checker
from lot_grpc.server.counting import MAX_ITEMS, ItemCounter, _rule
from tests.server.examples import EXAMPLES, example, method_of, path_of
from tests.server.service import Lot
from tests.server.wire import failure, failure_of


def lists(
    descriptor: Descriptor, reach: Callable[[Any], Any] = lambda message: message, path: str = ""
) -> Iterator[tuple[str, FieldDescriptor, Callable[[Any], Any]]]:
    """Each list and map below a message: its path, its field, and the way to who has it."""
    for field in descriptor.fields:
        kind = field.message_type
        if field.is_repeated:
            yield f"{path}{field.name}", field, reach
        if kind is None or kind.GetOptions().map_entry or kind.name in {"Struct", "ListValue"}:
            continue
        if kind.full_name.startswith("google.") and kind.name != "FieldMask":
            continue

        def below(message: Any, name: str = field.name, many: bool = field.is_repeated) -> Any:
            found = getattr(reach(message), name)
            if not many:
                found.SetInParent()
                return found
            return found[0] if found else found.add()

        yield from lists(kind, below, f"{path}{field.name}{'[0]' if field.is_repeated else ''}.")


def fill(holder: Any, field: FieldDescriptor, count: int) -> None:
    """Make a list or map as long as that, all items different and good."""
    items = getattr(holder, field.name)
    for number in range(len(items), count):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if value.message_type is not None:
                items[f"k{number}"].SetInParent()
            else:
                items[f"k{number}"] = _scalar(value, number)
        elif field.message_type is not None:
            _full(items.add(), number)
        else:
            items.append(_scalar(field, number))


def _full(message: Any, number: int) -> None:
    """Set each plain field of a message, and the messages that it has."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or (field.containing_oneof and field.name != "string_value"):
            continue
        if field.message_type is None:
            setattr(message, field.name, _scalar(field, number))
        elif field.message_type.full_name.startswith("lot."):
            _full(getattr(message, field.name), number)


def _scalar(field: FieldDescriptor, number: int) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[number % len(field.enum_type.values)].number
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return f"i{number}" if field.type == FieldDescriptor.TYPE_STRING else b"x"
    return field.cpp_type == FieldDescriptor.CPPTYPE_BOOL or 1


CASES = [
    (rpc, path, field, reach)
    for rpc in sorted(EXAMPLES)
    for path, field, reach in lists(method_of(rpc).input_type)
    if not path.startswith("records[0].")  # bounded with all others only
]
VALIDATOR = protovalidate.Validator()
EACH = pytest.mark.parametrize(
    ("rpc", "path", "field", "reach"), CASES, ids=[f"{rpc}-{path}" for rpc, path, *_ in CASES]
)


def test_the_lists_of_the_contract_are_found():
    paths = {(rpc.partition(".")[2], path) for rpc, path, *_ in CASES}
    assert len(paths) > 150
    assert ("RecordSteps", "steps") in paths
    assert ("BatchSavePatterns", "items[0].pattern.actions") in paths
    assert ("UpdatePattern", "update_mask.paths") in paths


def counted_only(checker: Checker) -> Checker:
    """One that can neither parse nor validate."""
    checker._type = checker._validator = checker._view = None  # type: ignore[assignment]
    return checker


@EACH
def test_a_list_over_its_bound_is_refused_by_its_bytes_alone(rpc, path, field, reach):
    rule, bound = _rule(field)
    request = example(rpc, "n")
    fill(reach(request), field, bound + 1)
    checker = Checker(type(request))
    known = [
        checking._violation(one, checker._descriptor)
        for one in VALIDATOR.collect_violations(request)
    ]
    with pytest.raises(RequestInvalidError) as raised:
        counted_only(checker)(request.SerializeToString())
    [told] = raised.value.violations
    assert (told.field, told.rule) == (path, rule)
    if not path.endswith("_mask.paths"):  # which protovalidate has no rule for
        assert told in known


@EACH
def test_a_list_at_its_bound_is_checked_to_an_end(rpc, path, field, reach):
    """Whatever the rules go over, they do not give up on what the contract allows."""
    request = example(rpc, "n")
    fill(reach(request), field, _rule(field)[1])
    message = ""
    try:
        Checker(type(request))(request.SerializeToString())
    except RequestInvalidError as error:
        message = error.message
    assert "too complex to validate" not in message
    assert "must have at most" not in message


# --- all together -----------------------------------------------------------------------------

BATCH = method_of("PatternService.BatchSavePatterns").input_type._concrete_class
EVENTS = method_of("EpisodeService.RecordEvents").input_type._concrete_class
IMPORT = method_of("AdminService.Import").input_type._concrete_class


def batch(patterns: int, actions: int) -> Any:
    request = BATCH()
    for number in range(patterns):
        pattern = request.items.add().pattern
        pattern.task = f"t{number}"
        for _ in range(actions):
            pattern.actions.add(tool="x")
    return request


def test_lists_in_lists_are_bounded_together():
    assert ItemCounter(BATCH)(batch(100, 499).SerializeToString()) == MAX_ITEMS
    checker = counted_only(Checker(BATCH))
    with pytest.raises(LimitExceededError, match=r"more than 50,000 items .*; split it") as caught:
        checker(batch(100, 500).SerializeToString())
    assert caught.value.metadata == {"limit": "50000", "given": "more than 50000"}


def test_the_lists_of_a_record_are_bounded_together_only():
    request = IMPORT()
    request.records.add().pattern.tags.extend(["t"] * 5_000)
    assert ItemCounter(IMPORT)(request.SerializeToString()) == 5_001
    request.records.add().pattern.tags.extend(["t"] * MAX_ITEMS)
    with pytest.raises(LimitExceededError):
        ItemCounter(IMPORT)(request.SerializeToString())


def test_packed_numbers_are_no_items():
    request = IMPORT()
    vector = request.records.add().vectors["text"]
    vector.values.extend([0.5] * 60_000)
    vector.indices.extend(range(60_000))
    assert ItemCounter(IMPORT)(request.SerializeToString()) == 2


@pytest.mark.parametrize("packed", [True, False])
def test_packed_numbers_of_a_list_with_a_bound_are_counted(packed):
    kind = method_of("MemoryService.WatchChanges").input_type._concrete_class
    number = kind.DESCRIPTOR.fields_by_name["resource_kinds"].number
    values = bytes([1]) * 21
    raw = (
        bytes([number << 3 | 2, 21]) + values
        if packed
        else b"".join(bytes([number << 3, value]) for value in values)
    )
    assert len(kind.FromString(raw).resource_kinds) == 21
    with pytest.raises(RequestInvalidError, match="resource_kinds: must have at most 20 items"):
        ItemCounter(kind)(raw)


def test_json_values_are_bounded_and_small_structs_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(counting, "MAX_FIELDS", 10_000)
    data = Struct()
    data.update({"a": [{"b": None}] * 3})  # 25 fields an event
    request = EVENTS()
    for _ in range(380):
        request.events.add(event_type="x").data.CopyFrom(data)
    assert len(request.SerializeToString()) > 20_000
    assert ItemCounter(EVENTS)(request.SerializeToString()) == 380
    request.events.add().data.update({"a": [None] * 300})
    with pytest.raises(LimitExceededError, match="10,000 fields and values") as caught:
        counted_only(Checker(EVENTS))(request.SerializeToString())
    assert caught.value.metadata == {"limit": "10000", "given": "more than 10000"}


def test_a_field_that_comes_again_and_again_is_bounded(monkeypatch):
    monkeypatch.setattr(counting, "MAX_FIELDS", 10_000)
    assert ItemCounter(BATCH)(b"\x78\x01" * 10_000) == 0
    with pytest.raises(LimitExceededError):
        ItemCounter(BATCH)(b"\x78\x01" * 10_001)


@pytest.mark.parametrize(
    "raw",
    [b"\x0a", b"\x0a\x05abc", b"\xff" * 50, b"\x0b" * 500, b"\x0b\x0c", b"\x09\x01", b"\x0d\x01",
     b"\x12\x02\x0a\x05", b"\x80", b"\x08\xff"],
)  # fmt: skip
def test_bytes_that_are_no_message_are_refused_at_once(raw):
    with pytest.raises(DecodeError):
        ItemCounter(BATCH)(raw)
    with pytest.raises(RequestMalformedError, match="truncated or is a different message"):
        Checker(BATCH)(raw)


@pytest.mark.parametrize("rpc", sorted(EXAMPLES))
def test_what_is_good_is_counted_right(rpc):
    request = example(rpc, "n")
    for _, field, reach in lists(method_of(rpc).input_type):
        fill(reach(request), field, 2)
    expected = sum(_items(request))
    assert ItemCounter(type(request))(request.SerializeToString()) == expected


def _items(message: Message) -> Iterator[int]:
    for field, value in message.ListFields():
        kind = field.message_type
        if field.is_repeated and not field.is_packed:
            yield len(value)
        if kind is None or kind.GetOptions().map_entry or kind.name in {"Struct", "ListValue"}:
            continue
        for one in value if field.is_repeated else [value]:
            yield from _items(one)


# --- the validator ----------------------------------------------------------------------------


class GivesUp:
    """A validator whose rules take too long."""

    def collect_violations(self, message: Any, *, fail_fast: bool = False) -> Any:
        raise protovalidate.EvaluationError(
            "error evaluating select_action.actions.unique: Iteration budget exceeded"
        )


def test_a_rule_that_gives_up_is_told_and_is_no_internal_error():
    request = example("LearningService.SelectAction", "n")
    checker = Checker(type(request))
    checker._validator = GivesUp()  # type: ignore[assignment]
    with pytest.raises(RequestInvalidError, match=r"budget exceeded.*fewer items") as told:
        checker(request.SerializeToString())
    assert told.value.violations[0].rule == "select_action.actions.unique"


@pytest.mark.exhaustive
def test_the_validator_still_says_so_when_it_gives_up():
    request = example("LearningService.SelectAction", "n")
    fill(request, request.DESCRIPTOR.fields_by_name["actions"], 10_000)
    with pytest.raises(protovalidate.EvaluationError, match=r"^error evaluating select_action\."):
        protovalidate.Validator().collect_violations(request)


def test_of_many_violations_some_are_told_and_all_are_counted():
    request = batch(9, 1_000)
    for item in request.items:
        for action in item.pattern.actions:
            action.tool = ""
    with pytest.raises(RequestInvalidError) as raised:
        Checker(BATCH)(request.SerializeToString())
    assert len(raised.value.violations) == 20
    assert raised.value.metadata["violations"] == "9000"
    request.items.extend(request.items[:2])  # beyond that each costs too much
    with pytest.raises(RequestInvalidError) as raised:
        Checker(BATCH)(request.SerializeToString())
    assert raised.value.metadata["violations"] == "1"


# --- on the wire ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rpc", "name"),
    [
        ("LearningService.SelectAction", "actions"),
        ("LearningService.RecordSteps", "steps"),
        ("EpisodeService.RecordEpisode", "events"),
        ("PatternService.BatchSavePatterns", "items"),
        ("MemoryService.BatchCreateMemories", "items"),
        ("PatternService.RecordOutcome", "pattern_ids"),
        ("MemoryService.ClearSession", "keys"),
    ],
)
async def test_a_hundred_thousand_items_are_refused(lot: Lot, rpc, name):
    request = example(rpc, lot.namespace)
    number = request.DESCRIPTOR.fields_by_name[name].number
    raw = request.SerializeToString() + bytes([number << 3 | 2, 0]) * 100_000
    failed = await failure(lot.raw(path_of(rpc))(raw, timeout=30))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert failed.fields == {name: "repeated.max_items"}
    assert failed.size < 1_000


async def test_a_stream_is_refused_too(lot: Lot):
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    raw = example("EpisodeService.RecordEvents", lot.namespace).SerializeToString()
    number = EVENTS.DESCRIPTOR.fields_by_name["events"].number
    call: Any = lot.channel.stream_stream(path_of("EpisodeService.RecordEvents"))(timeout=30)
    await call.write(raw)
    await call.read()
    await call.write(raw + bytes([number << 3 | 2, 0]) * 100_000)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert failure_of(raised.value).fields == {"events": "repeated.max_items"}
