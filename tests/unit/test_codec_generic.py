"""Encoders and decoders: what they copy, and which pairs they refuse when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.domain.memory import ConversationSummary, Project
from lot_grpc.pb.lot.v1 import memory_pb2, namespace_policy_pb2, outcome_pb2, pattern_pb2
from lot_grpc.server.codec.generic import Decoder, Encoder
from lot_grpc.server.codec.values import EnumCodec, struct_from_json


@dataclass(frozen=True)
class Part:
    name: str
    value: float
    weight: float = 0.0


@dataclass(frozen=True)
class Step:
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    note: str = "none"


@dataclass(frozen=True)
class Inner:
    value: float

    @property
    def weight(self) -> float:
        return 2 * self.value


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None


def of(**attributes: Any) -> type:
    """A class like Part with other types of attributes."""
    made = type("Other", (), {"__annotations__": {"name": str, "value": float, "weight": float}})
    made.__annotations__ |= attributes
    return dataclass(frozen=True)(made)


def test_attributes_are_copied_into_fields_of_their_name():
    message = Encoder(Part, outcome_pb2.ScorePart)(Part("p", 0.5, 2.0))
    assert message == outcome_pb2.ScorePart(name="p", value=0.5, weight=2.0)
    assert Decoder(outcome_pb2.ScorePart, Part)(message) == Part("p", 0.5, 2.0)


def test_what_is_absent_has_the_default_of_the_attribute():
    assert Decoder(pattern_pb2.Action, Step)(pattern_pb2.Action()) == Step("")
    decode = Decoder(pattern_pb2.Action, Step, defaults={"note": "n", "tool": "t"})
    assert decode(pattern_pb2.Action()) == Step("t", {}, "n")
    assert decode(pattern_pb2.Action(tool="x"), note="given") == Step("x", {}, "given")


def test_an_empty_struct_is_absent():
    encode = Encoder(Step, pattern_pb2.Action)
    assert not encode(Step("t")).HasField("args")
    assert encode(Step("t", {"n": 1})).args == struct_from_json({"n": 1})


def test_a_refused_value_is_named_by_its_path():
    @dataclass(frozen=True)
    class Owner:
        expire_time: int | None = None

    omit = set(memory_pb2.Memory.DESCRIPTOR.fields_by_name) - {"expire_time"}
    decode = Decoder(memory_pb2.Memory, Owner, path="memory", omit=omit)
    message = memory_pb2.Memory(expire_time=Timestamp(seconds=-1))
    for path, name in (
        (None, "memory.expire_time"),
        ("", "expire_time"),
        ("a[1]", "a[1].expire_time"),
    ):
        with pytest.raises(RequestInvalidError) as caught:
            decode(message, path)
        assert caught.value.violations[0].field == name


def test_items_are_named_by_their_number():
    @dataclass(frozen=True)
    class Owner:
        actions: tuple[Step, ...] = ()

    omit = set(pattern_pb2.Pattern.DESCRIPTOR.fields_by_name) - {"actions"}
    decode = Decoder(pattern_pb2.Pattern, Owner, omit=omit)
    large = pattern_pb2.Action()
    large.args["text"] = "x" * 300_000
    with pytest.raises(RequestInvalidError) as caught:
        decode(pattern_pb2.Pattern(actions=[pattern_pb2.Action(tool="a"), large]))
    assert caught.value.violations[0].field == "actions[1].args"


def test_a_oneof_is_a_union_of_classes_named_like_its_fields():
    @dataclass(frozen=True)
    class Owner:
        details: ConversationSummary | Project | None = None

    omit = set(memory_pb2.Memory.DESCRIPTOR.fields_by_name) - {"conversation_summary", "project"}
    encode = Encoder(Owner, memory_pb2.Memory, omit=omit)
    decode = Decoder(memory_pb2.Memory, Owner, omit=omit)
    for details in (
        None,
        Project("p", ("x",), "done", 7_000_001),
        ConversationSummary(("k",), "u"),
    ):
        assert decode(encode(Owner(details))) == Owner(details)


def test_attributes_of_an_attribute_go_into_the_same_message():
    encode = Encoder(Outer, outcome_pb2.ScorePart, flatten=("inner",))
    assert encode(Outer("n", Inner(0.5))) == outcome_pb2.ScorePart(name="n", value=0.5, weight=1.0)
    assert encode(Outer("n", None)) == outcome_pb2.ScorePart(name="n")


def test_a_field_without_an_attribute_is_refused():
    for make in (
        lambda **more: Encoder(Step, outcome_pb2.ScorePart, **more),
        lambda **more: Decoder(outcome_pb2.ScorePart, Step, **more),
    ):
        with pytest.raises(TypeError, match="field name has no attribute"):
            make()
        with pytest.raises(TypeError, match="attribute args, note, tool has no field"):
            make(omit={"name", "value", "weight"})
        with pytest.raises(TypeError, match="neither has other"):
            make(omit={"name", "value", "weight", "args", "note", "tool", "other"})
        with pytest.raises(TypeError, match="no field other"):
            make(rename={"other": "name"}, omit={"name", "value", "weight"})


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (int, "value cannot be"),
        (str, "value cannot be"),
        (bytes, "value cannot be"),
        (float | None, "value cannot say None"),
    ],
)
def test_an_attribute_of_another_type_is_refused(hint, why):
    kind = of(value=hint)
    with pytest.raises(TypeError, match=why):
        Encoder(kind, outcome_pb2.ScorePart)
    with pytest.raises(TypeError, match=why):
        Decoder(outcome_pb2.ScorePart, kind)


def test_a_list_and_a_map_are_not_taken_for_single_values():
    for name, hint in (("tags", str), ("labels", tuple[str, ...]), ("tags", Mapping[str, str])):
        kind: type = dataclass(frozen=True)(type("Owner", (), {"__annotations__": {name: hint}}))
        omit = set(memory_pb2.Memory.DESCRIPTOR.fields_by_name) - {name}
        with pytest.raises(TypeError, match=f"{name} cannot be"):
            Decoder(memory_pb2.Memory, kind, omit=omit)


def test_a_truth_value_that_could_never_be_false_is_refused():
    @dataclass(frozen=True)
    class Owner:
        pinned: bool = True

    omit = set(memory_pb2.Memory.DESCRIPTOR.fields_by_name) - {"pinned"}
    with pytest.raises(TypeError, match="pinned would never be False"):
        Decoder(memory_pb2.Memory, Owner, omit=omit)


def test_enums_with_other_members_are_refused():
    class Fewer(StrEnum):
        STRICT = "strict"

    with pytest.raises(TypeError, match="Fewer and PolicyPreset"):
        EnumCodec(namespace_policy_pb2.PolicyPreset.DESCRIPTOR, Fewer)
