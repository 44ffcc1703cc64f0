"""How a recorder ends: by a word or by an exception."""

from collections.abc import Callable
from typing import Any

import pytest
from either import Either, leave_by
from lot_client import LotClient, RetryPolicy
from lot_client.pb.lot.v1.episode_pb2 import EpisodeStatus
from scripted import Scripted

SUCCEEDED = EpisodeStatus.EPISODE_STATUS_SUCCEEDED
FAILED = EpisodeStatus.EPISODE_STATUS_FAILED
RETRY = RetryPolicy(first_delay=0.001, max_delay=0.01)


async def test_leaving_without_a_word_is_success(either: Either, server: Scripted):
    async with either(server.address) as client, client.recorder("A task"):
        pass

    [end] = server.ends
    assert end.status == SUCCEEDED
    assert end.request_id
    assert server.starts[0].request_id
    assert server.starts[0].request_id != end.request_id


async def test_the_last_word_counts(either: Either, server: Scripted):
    async with (
        either(server.address) as client,
        client.recorder("A task", extract_knowledge=True) as recorder,
    ):
        recorder.succeed("fine")
        recorder.fail({"type": "Timeout", "message": "slow"}, "not fine", metrics={"tokens": 3})

    [end] = server.ends
    assert (end.status, end.summary, end.extract_knowledge) == (FAILED, "not fine", True)
    assert (end.error.type, end.error.message) == ("Timeout", "slow")
    assert end.metrics["tokens"] == 3


async def test_an_exception_fails_the_episode_and_is_an_event(either: Either, server: Scripted):
    with pytest.raises(KeyError):
        await leave_by(either, server.address, KeyError("a\0b"))

    [end] = server.ends
    assert end.status == FAILED
    assert (end.error.type, end.error.message) == ("KeyError", r"'a\x00b'")
    assert [event.event_type for event in server.stored] == ["step", "error"]
    assert server.stored[1].data["error"]["type"] == "KeyError"


class OddError(Exception):
    """Of any text."""


async def test_an_error_of_any_text_can_be_told(either: Either, server: Scripted):
    with pytest.raises(OddError):
        await leave_by(either, server.address, OddError("\0 \ud800 " + "ü" * 70_000))

    message = server.ends[0].error.message
    assert message.startswith(r"\x00 \ud800 ü")
    assert len(message.encode()) <= 64 * 1024


async def test_an_exception_outdoes_success_but_not_a_told_failure(
    either: Either, server: Scripted
):
    words: list[Callable[[Any], None]] = [
        lambda recorder: recorder.succeed(),
        lambda recorder: recorder.fail(),
        lambda recorder: recorder.fail("the real cause"),
    ]
    for word in words:
        with pytest.raises(KeyError):
            await leave_by(either, server.address, KeyError("x"), word)
        server.stored.clear()

    assert [end.status for end in server.ends] == [FAILED] * 3
    assert [end.error.type for end in server.ends] == ["KeyError", "", ""]
    assert server.ends[2].error.message == "the real cause"


@pytest.mark.parametrize(("code", "status"), [(None, SUCCEEDED), (0, SUCCEEDED), (2, FAILED)])
def test_a_wanted_exit_is_no_failure(server: Scripted, code: int | None, status: int):
    with pytest.raises(SystemExit), LotClient(server.address) as client, client.recorder("A task"):
        raise SystemExit(code)

    assert server.ends[0].status == status


async def test_an_open_episode_stays_open_after_an_exception(either: Either, server: Scripted):
    with pytest.raises(KeyError):
        await leave_by(either, server.address, KeyError("x"), end=False)

    assert server.ends == []
    assert [event.event_type for event in server.stored] == ["step", "error"]


@pytest.mark.parametrize(
    "word", [{"reward": "much"}, {"rewards": 1}, {"metrics": 3}, {"tools_used": "git"}]
)
def test_a_word_that_does_not_fit_is_refused_at_once(server: Scripted, word: dict):
    with LotClient(server.address) as client, client.recorder("A task") as recorder:  # noqa: SIM117
        with pytest.raises((TypeError, ValueError)):  # within: the recorder sees no exception
            recorder.succeed(**word)

    assert server.ends[0].status == SUCCEEDED
