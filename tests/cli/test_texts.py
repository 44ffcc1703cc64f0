"""Texts for terminals, and times as people give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time, moment, offset
from lot_grpc.cli.words import CHANGE_TYPES, RESOURCE_KINDS, STATUSES, json_line
from lot_grpc.pb.lot.v1 import change_pb2, episode_pb2, resource_kind_pb2

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
JOINERS = "\u200c\u200d"


@given(st.text())
def test_what_is_cleaned_steers_nothing_and_keeps_its_letters(text):
    shown = clean(text)
    assert not any(
        ord(one) < 32 or 127 <= ord(one) < 160 or one in "\u2028\u2029\u202a\u202e\u2066\ufeff"
        for one in shown
    )
    assert clean(shown) == shown
    if text.isprintable():
        assert shown == text


@given(st.text())
def test_one_line_is_one(text):
    assert len(one_line(text).splitlines()) <= 1
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J\x7f\r\x00", "\\x9b2J\\x7f\\x0d\\x00"),
        ("a\u202eb", "a\\u202eb"),
        ("\U000e0041", "\\U000e0041"),
        ("👩\u200d💻 é 漢", "👩\u200d💻 é 漢"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert clean(text) == shown


def test_a_line_has_no_more_than_is_wanted():
    assert one_line("a \t\n b " * 1000, most=9) == "a b a"


def test_data_has_whole_numbers_and_letters_as_they_are():
    data = Struct()
    data.update({"b": 0, "c": "", "a": [8080, 1.5, 1.5e18, 1e300, True, None, "é"]})
    text = '{"a":[8080,1.5,1500000000000000000,1e+300,true,null,"é"],"b":0,"c":""}'
    assert data_text(data) == text


def test_a_line_of_json_has_whole_numbers_as_such():
    episode = episode_pb2.Episode(effort=4, metrics={"ms": 8080, "share": 0.1})
    episode.metadata.update({"port": 8080, "id": 1.5e18})
    line = json_line(episode)
    assert '"effort": 4,' in line
    assert '"ms": 8080' in line
    assert '"port": 8080' in line
    assert '"id": 1500000000000000000' in line
    assert '"share": 0.1' in line


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("15min", timedelta(minutes=15)),
        ("15m", timedelta(minutes=15)),
        ("1.5h", timedelta(minutes=90)),
        ("3d", timedelta(days=3)),
        (" 2w ", timedelta(weeks=2)),
    ],
)
def test_a_time_may_be_how_long_ago(text, ago):
    assert moment(text, NOW) == NOW - ago


def test_a_time_may_be_iso_8601():
    assert moment("2026-03-01T12:00:00+02:00", NOW) == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert moment("2026-03-01T12:00Z", NOW) == NOW
    local = datetime(2026, 3, 1).astimezone()  # midnight here
    assert moment("2026-03-01", NOW) == local


@pytest.mark.parametrize(
    "text", ["", "soon", "2 h", "-2h", "2h3", "2026-13-01", "9999999999999d", "1e400h"]
)
def test_what_is_no_time_says_what_would_be(text):
    with pytest.raises(ValueError, match="is not a time: give ISO 8601"):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "+0:00.000"),
        (-0.5, "-0:00.500"),
        (-0.0004, "+0:00.000"),
        (59.9996, "+1:00.000"),
        (62.345, "+1:02.345"),
        (3600, "+1:00:00.000"),
        (90_000, "+25:00:00.000"),
    ],
)
def test_an_offset_is_told_like_a_clock(seconds, shown):
    assert offset(seconds) == shown


@pytest.mark.parametrize("seconds", [-62_135_596_800, 253_402_300_799])
def test_times_at_the_ends_of_the_calendar_can_be_shown(seconds):
    assert local_time(Timestamp(seconds=seconds))


def test_every_value_of_the_contract_has_a_word():
    assert [CHANGE_TYPES.word(n) for n in range(1, 8)] == [
        "record.stored",
        "record.updated",
        "record.deleted",
        "record.cleared",
        "pattern.learned",
        "pattern.matched",
        "context.suggested",
    ]
    for words, kind in (
        (CHANGE_TYPES, change_pb2.ChangeType),
        (RESOURCE_KINDS, resource_kind_pb2.ResourceKind),
        (STATUSES, episode_pb2.EpisodeStatus),
    ):
        for number in kind.values():
            if number:
                assert words.parse(words.word(number)) == number
        assert words.word(999) == "999"
