"""Refused calls are held back, whoever makes them."""

from __future__ import annotations

import asyncio
import random

import pytest

from lot_grpc.domain.access import ANONYMOUS, Credentials, Principal
from lot_grpc.domain.errors import (
    AuthUnavailableError,
    CredentialsInvalidError,
    CredentialsRequiredError,
    LotError,
)
from lot_grpc.server import refusals
from lot_grpc.server.guards import Guards
from lot_grpc.server.refusals import Refusals
from tests.server.doubles import Patterns, get_pattern
from tests.server.wire import failure, until, wire

ERRORS = {
    "": CredentialsRequiredError(),
    "wrong": CredentialsInvalidError("no such key"),
    "unknown": AuthUnavailableError(),
}


class Refusing:
    """Accepts nobody but ``good``."""

    async def authenticate(self, credentials: Credentials) -> Principal:
        sent = credentials.authorizations[0] if credentials.authorizations else ""
        if sent == "good":
            return ANONYMOUS
        if sent in ERRORS:
            raise ERRORS[sent]
        raise RuntimeError("a bug")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times for which refusals were held back."""
    found: list[float] = []

    def noted(shortest: float, longest: float) -> float:
        found.append(longest)
        return 0.0

    monkeypatch.setattr(random, "uniform", noted)
    return found


@pytest.mark.parametrize(("sent", "error"), ERRORS.items())
async def test_a_call_that_is_not_authenticated_is_held_back(
    waits: list[float], sent: str, error: LotError
):
    async with wire(Patterns(), guards=Guards(authenticator=Refusing())) as it:
        metadata = (("authorization", sent),) if sent else ()
        failed = await failure(it.patterns.GetPattern(get_pattern(), metadata=metadata))
        assert failed.reason == error.reason
        assert len(waits) == 1


async def test_an_authenticated_call_is_not_held_back(waits: list[float]):
    async with wire(Patterns(), guards=Guards(authenticator=Refusing())) as it:
        await it.patterns.GetPattern(get_pattern(), metadata=(("authorization", "good"),))
        assert not waits


async def test_a_bug_in_authentication_refuses_the_call(waits: list[float]):
    async with wire(Patterns(), guards=Guards(authenticator=Refusing())) as it:
        failed = await failure(
            it.patterns.GetPattern(get_pattern(), metadata=(("authorization", "x"),))
        )
        assert failed.reason == "INTERNAL"


async def test_the_more_are_held_back_the_longer(monkeypatch: pytest.MonkeyPatch):
    """So that no more of them are sent per second."""
    monkeypatch.setattr(random, "uniform", lambda _, longest: longest)
    few, many = refusals.seconds(1), refusals.seconds(refusals.MOST)
    assert few == refusals.seconds(refusals.MANY)
    assert many == few * refusals.MOST / refusals.MANY


async def test_the_number_of_those_that_wait_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(refusals, "MOST", 2)
    monkeypatch.setattr(refusals, "seconds", lambda _: 3600.0)
    held = Refusals(asyncio.Event())
    waiting = [asyncio.create_task(held.hold_back(ANONYMOUS)) for _ in range(2)]
    await until(lambda: len(held) == 2)
    assert not await held.hold_back(ANONYMOUS)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert not len(held)


async def test_nothing_is_held_back_once_the_server_stops():
    draining = asyncio.Event()
    draining.set()
    assert not await Refusals(draining).hold_back(ANONYMOUS)


async def test_what_is_held_back_is_refused_when_the_server_begins_to_stop(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(refusals, "seconds", lambda _: 3600.0)
    draining = asyncio.Event()
    held = Refusals(draining)
    waiting = asyncio.create_task(held.hold_back(ANONYMOUS))
    await until(lambda: len(held) == 1)
    draining.set()
    async with asyncio.timeout(10):
        await waiting
