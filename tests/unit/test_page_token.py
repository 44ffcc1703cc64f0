from __future__ import annotations

import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lot_grpc.domain.errors import PageTokenMismatchError
from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_pb2, pattern_service_pb2
from lot_grpc.server.page_token import (
    number_from_token,
    number_to_token,
    position_from_token,
    position_to_token,
)
from lot_grpc.services.paging import Position

ASKED = pattern_service_pb2.ListPatternsRequest(
    namespace="team", page_size=10, filter=pattern_pb2.PatternFilter(languages=["python"])
)
EVENTS = episode_service_pb2.ListEpisodeEventsRequest(namespace="team", episode_id="e-1")
ONE, OTHER = "0b0f7a8e-1f0e-5c1e-9a53-1f2d6c0e4b11", "6f0f5a7e-0d0b-5c1e-9a53-1f2d6c0e4b11"
PLACE = Position(1_700_000_000_000_000, (ONE, OTHER))
GOOD = position_to_token(ASKED, PLACE)

positions = st.builds(
    Position, st.integers(0, 2**62), st.lists(st.uuids().map(str), max_size=3).map(tuple)
)


@given(positions)
def test_a_token_leads_back_to_its_place(position):
    assert position_from_token(ASKED, position_to_token(ASKED, position)) == position


@given(st.integers(0, 2**62))
def test_a_number_leads_back_to_itself(number):
    assert number_from_token(EVENTS, number_to_token(EVENTS, number)) == number


def test_no_token_is_the_beginning_and_no_place_the_end():
    assert position_from_token(ASKED, "") is None
    assert number_from_token(EVENTS, "") is None
    assert position_to_token(ASKED, None) == ""
    assert number_to_token(EVENTS, None) == ""


def test_another_size_of_page_may_be_asked_for_in_the_middle():
    more = pattern_service_pb2.ListPatternsRequest()
    more.CopyFrom(ASKED)
    more.page_size = 50
    more.page_token = GOOD
    assert position_from_token(more, GOOD) == PLACE


@pytest.mark.parametrize(
    "other",
    [
        pattern_service_pb2.ListPatternsRequest(namespace="team"),
        pattern_service_pb2.ListPatternsRequest(
            namespace="other", filter=pattern_pb2.PatternFilter(languages=["python"])
        ),
        pattern_service_pb2.ListPatternsRequest(
            namespace="team", filter=pattern_pb2.PatternFilter(languages=["go"])
        ),
        episode_service_pb2.ListEpisodesRequest(namespace="team"),
    ],
)
def test_a_token_of_another_list_is_refused(other):
    with pytest.raises(PageTokenMismatchError, match="other arguments"):
        position_from_token(other, GOOD)


def test_the_same_bytes_of_another_rpc_are_refused():
    patterns = pattern_service_pb2.ListPatternsRequest(namespace="team")
    episodes = episode_service_pb2.ListEpisodesRequest(namespace="team")
    assert patterns.SerializeToString() == episodes.SerializeToString()
    with pytest.raises(PageTokenMismatchError):
        position_from_token(episodes, position_to_token(patterns, PLACE))


def _with_position(position: object) -> str:
    """A token that is whole but for its position."""
    version, question, _ = json.loads(base64.urlsafe_b64decode(GOOD + "=" * (-len(GOOD) % 4)))
    text = json.dumps([version, question, position])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "position",
    [
        None, [], {}, "x", 5, 5.5, True, [None], ["5"], [5.0], [5, 6], [5, None], [5, ["a"]],
        {"sort_key": 5}, [1e400],
        [True], [2**80], [-(2**80)], [5, "no id"],
    ],
)  # fmt: skip
def test_a_place_of_a_wrong_kind_is_refused(position):
    with pytest.raises(PageTokenMismatchError):
        position_from_token(ASKED, _with_position(position))


@pytest.mark.parametrize(
    "number",
    [
        None, [], "5", 5.5, 1e400,
        True, -1, 2**80,
    ],
)  # fmt: skip
def test_a_number_of_a_wrong_kind_is_refused(number):
    version, question, _ = json.loads(base64.urlsafe_b64decode(number_to_token(EVENTS, 5) + "==="))
    token = base64.urlsafe_b64encode(json.dumps([version, question, number]).encode()).decode()
    with pytest.raises(PageTokenMismatchError):
        number_from_token(EVENTS, token)


@given(st.text(min_size=1, max_size=60) | st.binary(min_size=1, max_size=60).map(str))
@example("é")
@example("\ud800")
@example("====")
@example("bnVsbA")
@example(base64.urlsafe_b64encode(b"[" * 5000).decode())
@example(base64.urlsafe_b64encode(b'{"a":1}').decode())
@example(base64.urlsafe_b64encode(b"\xff\xfe\x00").decode())
@example(base64.urlsafe_b64encode(b"[1,2]").decode())
@example(base64.urlsafe_b64encode(b"[1,2,3,4]").decode())
def test_whatever_comes_instead_of_a_token_is_refused_as_one(text):
    for read in (position_from_token, number_from_token):
        with pytest.raises(PageTokenMismatchError):
            read(ASKED, text)


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("Aa0-_=!é\n"))
def test_one_wrong_letter_never_leads_astray_with_another_error(place, letter):
    damaged = GOOD[:place] + letter + GOOD[place + 1 :]
    try:
        found = position_from_token(ASKED, damaged)
    except PageTokenMismatchError:
        return
    assert found is not None
    assert -(2**63) <= found.sort_key < 2**63


@given(st.integers(1, len(GOOD) - 1))
def test_a_token_that_was_cut_off_is_refused(length):
    with pytest.raises(PageTokenMismatchError):
        position_from_token(ASKED, GOOD[:length])


def test_a_giant_number_in_a_token_is_refused():
    with pytest.raises(PageTokenMismatchError):
        position_from_token(ASKED, base64.urlsafe_b64encode(b"9" * 6000).decode())
