"""Where an issuer's keys come from, and what happens while that is away."""

from __future__ import annotations

import asyncio
import threading

import pytest
import structlog

from lot_grpc.auth import files, key_set_source
from lot_grpc.auth.files import FileError
from lot_grpc.auth.key_set_source import FileKeys, UrlKeys, open_source
from lot_grpc.domain.errors import AuthUnavailableError
from tests.auth.issuer import Issuer, issuing, key_set, published


@pytest.fixture
def issuer():
    with issuing() as found:
        yield found


@pytest.fixture
async def keys(issuer):
    source = UrlKeys(issuer.url)
    yield source
    await source.close()


async def found(source, kid: str = "k1") -> bool:
    return await source.find(kid, "RS256") is not None


@pytest.fixture
def soon(monkeypatch) -> None:
    """The next request may follow at once."""
    monkeypatch.setattr(key_set_source, "MIN_SECONDS", 0.0)


# --- a file -----------------------------------------------------------------------------------


async def test_a_file_is_read_anew_when_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.0)
    path = tmp_path / "jwks.json"
    path.write_bytes(key_set())
    path.chmod(0o644)  # the keys are public
    source = open_source(str(path))
    assert isinstance(source, FileKeys)
    before = source.keys
    assert await found(source)
    path.write_bytes(key_set(published("RSA", "k2", 1)))
    assert not await found(source)
    assert await found(source, "k2")
    assert source.keys is not before
    path.write_bytes(b"{")
    with structlog.testing.capture_logs() as log:
        assert await found(source, "k2")
    assert log[0]["event"] == "cannot use a changed file; keeping the last good state"
    assert len(await source.load()) == 1
    await source.close()


async def test_a_file_that_others_may_write_is_refused(tmp_path):
    path = tmp_path / "jwks.json"
    path.write_bytes(key_set())
    path.chmod(0o666)
    with pytest.raises(FileError, match="can be written by others"):
        open_source(str(path))
    with pytest.raises(FileError, match="No such file"):
        open_source(str(tmp_path / "none"))


# --- a URL ------------------------------------------------------------------------------------


async def test_keys_are_read_once_and_then_known(issuer, keys):
    assert await found(keys)
    assert await found(keys)
    assert issuer.requests == 1


async def test_an_unknown_key_is_looked_for_but_not_at_every_call(issuer, keys):
    assert await found(keys)
    issuer.content = key_set(published("RSA", "k2", 1))
    for number in range(200):
        assert not await found(keys, f"made-up-{number}")
    assert issuer.requests == 1
    keys._fetched -= key_set_source.MIN_SECONDS
    assert await found(keys, "k2")
    assert not await found(keys)  # it was withdrawn
    assert issuer.requests == 2


async def test_a_flood_of_made_up_keys_is_one_request(issuer, keys):
    issuer.waits = threading.Event()
    calls = [asyncio.create_task(found(keys, f"made-up-{number}")) for number in range(500)]
    for _ in range(3):  # each is started, and goes as far as it can
        await asyncio.sleep(0)
    refused = [one for one in calls if one.done()]
    assert len(refused) == 500 - key_set_source._MOST_WAITING
    assert all(isinstance(one.exception(), AuthUnavailableError) for one in refused)
    issuer.waits.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert ended.count(False) == key_set_source._MOST_WAITING
    assert issuer.requests == 1
    assert keys._waiting == 0


async def test_a_caller_that_leaves_does_not_end_the_request_of_others(issuer, keys):
    issuer.waits = threading.Event()
    first, second = (asyncio.create_task(found(keys)) for _ in range(2))
    while keys._waiting < 2:
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    issuer.waits.set()
    assert await second
    assert issuer.requests == 1
    assert keys._waiting == 0


async def test_without_any_keys_a_token_cannot_be_verified(issuer, keys):
    issuer.status = 503
    with structlog.testing.capture_logs() as log:
        for _ in range(3):
            with pytest.raises(AuthUnavailableError):
                await found(keys)
    assert issuer.requests == 1
    assert [one["event"] for one in log] == ["the issuer's keys cannot be read"]
    assert log[0]["why"] == f"{issuer.url} returned 503"


@pytest.mark.parametrize(
    "change",
    [
        {"status": 500},
        {"status": 404},
        {"status": 302, "headers": {"Location": "/elsewhere"}},
        {"content": b"{"},
        {"content": b'{"keys":[]}'},
        {"content": b" " * (2**20 + 1)},
        {"headers": {"Content-Encoding": "gzip"}},
    ],
)
async def test_if_the_issuer_fails_the_last_keys_stay_and_it_is_said_once(
    issuer, keys, soon, change
):
    assert await found(keys)
    before = keys.keys
    good = Issuer()
    for name, value in change.items():
        setattr(issuer, name, value)
    with structlog.testing.capture_logs() as log:
        for _ in range(3):
            assert not await found(keys, "unknown")
            assert await found(keys)
    assert issuer.requests == 4
    assert keys.keys is before
    assert [one["event"] for one in log] == ["the issuer's keys cannot be read"]
    issuer.status, issuer.content, issuer.headers = good.status, good.content, {}
    with structlog.testing.capture_logs() as log:
        await keys.refresh()
    assert [one["event"] for one in log] == ["the issuer's keys can be read again"]
    assert keys.keys is not before


async def test_an_issuer_that_is_gone_or_silent_is_a_failure(issuer, keys, soon, monkeypatch):
    monkeypatch.setattr(key_set_source, "FETCH_SECONDS", 0.1)
    issuer.waits = threading.Event()
    with structlog.testing.capture_logs() as log, pytest.raises(AuthUnavailableError):
        await found(keys)
    assert "did not respond within 0.1 s" in log[0]["why"]
    gone = UrlKeys("http://127.0.0.1:9/keys")
    with structlog.testing.capture_logs() as log, pytest.raises(AuthUnavailableError):
        await found(gone)
    assert log[0]["why"] == "http://127.0.0.1:9/keys cannot be read (ConnectError)"
    await gone.close()


async def test_keys_are_refreshed_in_the_background_and_sooner_after_a_failure(issuer, keys):
    await keys.refresh()
    await keys.refresh()
    assert issuer.requests == 1
    keys._fetched -= key_set_source.REFRESH_SECONDS
    issuer.status = 500
    await keys.refresh()
    await keys.refresh()
    assert issuer.requests == 2
    keys._fetched -= key_set_source.MIN_SECONDS
    await keys.refresh()
    assert issuer.requests == 3
    assert await found(keys)


@pytest.mark.parametrize("behind", [-3600.0, 3600.0])
async def test_a_clock_that_is_off_is_said_once(issuer, keys, soon, behind):
    issuer.clock_behind = behind
    with structlog.testing.capture_logs() as log:
        await found(keys)
        await found(keys, "unknown")
    assert [one["event"] for one in log] == ["this machine's clock or the issuer's is off"]
    assert abs(log[0]["seconds_ahead"] - behind) <= 2
    assert abs(keys.clock_ahead - behind) <= 2
    issuer.clock_behind = 0.0
    await found(keys, "unknown")
    assert keys.clock_ahead == 0.0


@pytest.mark.parametrize("date", ["", "x", "Thu, 99 Foo 2026", "Mon, 01 Jan 0001 00:00:00 -0000"])
async def test_an_odd_date_is_no_clock(keys, date):
    keys._compare_clocks(date)
    assert keys.clock_ahead == 0.0 or date.startswith("Mon")
