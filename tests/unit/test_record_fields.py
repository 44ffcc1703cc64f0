"""What the fields of a dataclass become in a payload, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from lot_grpc.services.records.fields import FieldCodec


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    name: str
    size: int = 0


@dataclass(frozen=True)
class Outer:
    id: str
    colour: Colour | None = None
    tags: tuple[str, ...] = ()
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    data: bytes = b""
    share: float = 0.5


FULL = Outer(
    "a",
    Colour.RED,
    ("x",),
    Inner("i", 1),
    (Inner("j"), Inner("k", 2)),
    {"p": (1, 2)},
    b"\xff",
    0.25,
)
STORED = {
    "id": "a",
    "colour": "red",
    "tags": ["x"],
    "inner": {"name": "i", "size": 1},
    "several": [{"name": "j"}, {"name": "k", "size": 2}],
    "places": {"p": [1, 2]},
    "data": "/w==",
    "share": 0.25,
}


def test_each_type_is_kept_as_json_keeps_it():
    assert FieldCodec(Outer).write(FULL) == STORED
    assert FieldCodec(Outer).read(STORED) == FULL


def test_defaults_are_left_out_but_where_they_are_always_written():
    assert FieldCodec(Outer).write(Outer("a")) == {"id": "a"}
    assert FieldCodec(Outer).read({"id": "a", "other": 1}) == Outer("a")
    always = FieldCodec(Outer, always={"share", "colour"})
    assert always.write(Outer("a")) == {"id": "a", "share": 0.5, "colour": None}
    assert always.read({"id": "a", "colour": None}) == Outer("a")


def test_a_codec_that_is_not_sparse_writes_all_and_wants_all():
    codec = FieldCodec(Inner, sparse=False)
    assert codec.write(Inner("n")) == {"name": "n", "size": 0}
    with pytest.raises(KeyError, match="size"):
        codec.read({"name": "n"})


def test_fields_are_renamed_skipped_and_given_defaults():
    codec = FieldCodec(Inner, rename={"size": "bytes"}, defaults={"name": "none"})
    assert codec.write(Inner("none", 3)) == {"bytes": 3}
    assert codec.read({"bytes": 3}) == Inner("none", 3)
    codec = FieldCodec(Inner, skip={"name"}, values={"size": abs})
    assert codec.write(Inner("n", -1)) == {"size": -1}
    assert codec.read({"size": -1, "name": "stored"}, name="given") == Inner("given", 1)


def test_what_is_none_of_a_type_is_refused():
    with pytest.raises(ValueError, match="blue"):
        FieldCodec(Outer).read({"id": "a", "colour": "blue"})
    with pytest.raises(TypeError, match="id"):
        FieldCodec(Outer).read({})


def test_a_name_that_is_no_field_is_refused_when_the_codec_is_made():
    with pytest.raises(TypeError, match="Inner has no colour"):
        FieldCodec(Inner, skip={"colour"})
    with pytest.raises(TypeError, match="Inner has no colour"):
        FieldCodec(Inner, always={"colour"})
    with pytest.raises(TypeError, match="Inner has no colour"):
        FieldCodec(Inner, rename={"colour": "c"})
