"""JSON in Python and in protobuf: it comes back as it was given, or is refused by its path."""

import math
from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from lot_client import AsyncLotClient, from_value, to_dict, to_struct, to_value
from lot_client.messages import build
from lot_client.pb.lot.v1.episode_service_pb2 import EndEpisodeRequest
from lot_client.pb.lot.v1.memory_pb2 import Memory
from lot_client.pb.lot.v1.preference_pb2 import GetPreferenceRequest, PutPreferenceRequest

SAFE = 2**53 - 1
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
json_values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def exactly(value: Any) -> str:
    """Tells 1 from True, 0.0 from -0.0 and, as JSON does not, nothing from 4.0 and 4."""
    if isinstance(value, dict):
        return str({key: exactly(value[key]) for key in sorted(value)})
    if isinstance(value, list):
        return str([exactly(item) for item in value])
    if isinstance(value, float) and abs(value) <= SAFE and value.is_integer():
        return repr(value) if math.copysign(1, value) < 0 and not value else repr(int(value))
    return repr(value)


@settings(deadline=None)
@given(json_values)
def test_json_comes_back_as_it_was_given(value: Any):
    back = from_value(Value.FromString(to_value(value).SerializeToString()))
    assert exactly(back) == exactly(value)


def test_whole_numbers_come_back_as_such():
    args = to_dict(to_struct({"times": 4, "port": 8080.0, "share": 0.5, "big": 1.5e18, "on": True}))

    assert list(range(args["times"])) == [0, 1, 2, 3]
    assert repr(sorted(args.items())) == (
        "[('big', 1.5e+18), ('on', True), ('port', 8080), ('share', 0.5), ('times', 4)]"
    )


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, (2,)), [1, [2]]),
        (OrderedDict(a=1), {"a": 1}),
        (Level.HIGH, 3),
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (np.float64(0.1), 0.1),
        (SAFE, SAFE),
        (-SAFE, -SAFE),
        (2.0**63, 2.0**63),
        (to_struct({"n": 1}), {"n": 1}),
        (ListValue(values=[to_value(1)]), [1]),
        ({}, {}),
        ([], []),
    ],
)
def test_what_is_exactly_json_is_taken(value: Any, kept: Any):
    back = from_value(to_value(value))
    assert back == kept
    assert type(back) is type(kept)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (10157896543210987, ValueError, "is 10157896543210987, beyond"),
        (-(2**53), ValueError, "pass it as a str"),
        (np.int64(2**60), ValueError, "beyond"),
        (math.nan, ValueError, "nan"),
        (-math.inf, ValueError, "-inf"),
        (np.float64("nan"), ValueError, "nan"),
        (Decimal("0.1"), TypeError, r"Decimal.*use str\(\)"),
        (Fraction(1, 3), TypeError, "Fraction"),
        (datetime.now(UTC), TypeError, r"datetime.*isoformat\(\)"),
        (date(2026, 1, 1), TypeError, r"date.*isoformat\(\)"),
        (b"abc", TypeError, "bytes.*base64"),
        (bytearray(b"abc"), TypeError, "base64"),
        ({1, 2}, TypeError, "set.*sorted list"),
        (frozenset(), TypeError, "sorted list"),
        ({1: "a"}, TypeError, "has the key 1; keys must be str"),
        ({None: "a"}, TypeError, "has the key None"),
        (1j, TypeError, "complex"),
        (object(), TypeError, "object"),
        (Colour.RED, TypeError, "Colour"),
        (np.float32(0.1), TypeError, r"float32.*tolist\(\)"),
        (np.bool_(True), TypeError, r"tolist\(\)"),
        (np.array([1, 2]), TypeError, r"ndarray.*tolist\(\)"),
        ("a\0b", ValueError, "NUL"),
        ({"a\0b": 1}, ValueError, "NUL"),
        ("\udc80", ValueError, "lone surrogate"),
        ({"\udc80": 1}, ValueError, "lone surrogate"),
    ],
)
def test_what_would_come_back_otherwise_is_refused_by_its_path(
    value: Any, error: type[Exception], text: str
):
    with pytest.raises(error, match=text) as caught:
        build(Memory, {"metadata": {"ids": [0, {"odd key": value}]}})
    assert "metadata.ids[1]" in str(caught.value)
    assert '["odd key"]' in str(caught.value)


def test_what_has_no_end_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    deep: dict[str, Any] = {}
    for _ in range(15):
        deep = {"a": deep}
    to_struct(deep)
    for endless in ({"a": loop}, {"a": deep}):
        with pytest.raises(ValueError, match="must be nested at most 16 deep"):
            to_struct(endless)


def test_a_field_with_a_double_takes_no_number_that_it_would_round():
    assert build(EndEpisodeRequest, {"metrics": {"n": SAFE}}).metrics["n"] == SAFE
    with pytest.raises(ValueError, match=r"metrics\['n'\] is 9007199254740993, beyond"):
        build(EndEpisodeRequest, {"metrics": {"n": SAFE + 2}})
    with pytest.raises(ValueError, match="reward is 9007199254740993, beyond"):
        build(EndEpisodeRequest, {"reward": 2**53 + 1})


def test_a_value_is_made_of_json():
    assert build(PutPreferenceRequest, {"value": [8080, None]}).value == to_value([8080, None])
    assert from_value(Value()) is None
    with pytest.raises(TypeError, match="must be a dict"):
        to_struct([1])  # type: ignore[arg-type]
    assert to_struct({}) == Struct()


async def test_numbers_come_back_from_a_server_as_they_were_given(
    client: AsyncLotClient,
):
    given_args = {"port": 8080, "times": 4, "share": 0.1, "big": 1.5e18, "list": [SAFE, -0.5]}
    saved = await client.save_pattern("Start it", actions=[{"tool": "run", "args": given_args}])
    put = PutPreferenceRequest(key="port", value=to_value(8080))
    await client.call(client.memories.PutPreference, put)
    found = await client.call(client.memories.GetPreference, GetPreferenceRequest(key="port"))

    kept_args = to_dict(saved.pattern.actions[0].args)
    assert kept_args == given_args
    assert type(kept_args["times"]) is int
    assert repr(from_value(found.preference.value)) == "8080"
