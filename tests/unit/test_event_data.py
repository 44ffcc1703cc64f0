"""The bytes of a Struct, read as the library reads them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.event_data import read_data
from lot_grpc.server.codec.values import struct_from_json, struct_to_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_all_that_is_asked_for_is_read_and_nothing_else(values):
    data = struct_from_json(values).SerializeToString(deterministic=True)
    assert read_data(data, values.keys()) == struct_to_json(Struct.FromString(data))
    first = sorted(values)[:1]
    told = struct_to_json(struct_from_json(values))
    assert read_data(data, first) == {key: told[key] for key in first}
    assert read_data(data, ()) == {}


@given(st.binary(max_size=60))
def test_bytes_that_are_no_struct_never_end_otherwise_than_with_a_value_error(data):
    with suppress(ValueError):
        read_data(data, {"", "a"})


@pytest.mark.parametrize("data", [b"step 1", b"\x0a\x05abc", b"\x0a", b"\x0f\x01", b"\xff" * 20])
def test_what_is_cut_off_or_other_is_refused(data):
    with pytest.raises(ValueError, match=r"not a valid google\.protobuf\.Struct"):
        read_data(data, {"tool"})
