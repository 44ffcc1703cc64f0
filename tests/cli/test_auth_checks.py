"""What `lot-grpc check` says of authentication, and what a start refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lot_grpc.adapters import make_authenticator
from lot_grpc.auth_checks import auth_checks
from lot_grpc.domain.errors import StartupError
from lot_grpc.settings import Settings
from lot_grpc.settings_file import SettingsError, load_settings
from tests.auth.issuer import Issuer, issuing, key_set
from tests.auth.keys import add_key, change_key

NOW = datetime.now(UTC)


@pytest.fixture
def issuer(monkeypatch):
    with issuing() as found:
        monkeypatch.setenv("LOT_OIDC_ISSUER", "https://id.example")
        monkeypatch.setenv("LOT_OIDC_AUDIENCE", "lot-grpc")
        monkeypatch.setenv("LOT_OIDC_JWKS", found.url)
        yield found


async def only_check() -> tuple[bool, str]:
    [check] = await auth_checks(load_settings())
    return check.ok, check.detail


async def test_without_authentication_there_is_nothing_to_check():
    assert await auth_checks(Settings()) == []
    assert make_authenticator(Settings()) is None
    assert not Settings().authenticates


# --- keys -------------------------------------------------------------------------------------


async def test_a_good_key_file_is_counted(key_file):
    add_key(key_file)
    add_key(key_file, name="second", expire_time=NOW + timedelta(days=3))
    add_key(key_file, name="third")
    change_key(key_file, "third", revoke_time=NOW)
    assert await only_check() == (
        True,
        f"{key_file}: 2 valid, 1 revoked; within 7 days expire: second",
    )


async def test_a_file_without_a_valid_key_fails_the_check_and_not_the_start(key_file):
    add_key(key_file)
    change_key(key_file, "planner", expire_time=NOW - timedelta(days=1))
    ok, detail = await only_check()
    assert not ok
    assert detail.startswith(f"{key_file}: 1 expired; every key would be refused")
    assert make_authenticator(load_settings()) is not None
    key_file.write_text('{"version": 1}')
    ok, detail = await only_check()
    assert not ok
    assert f"{key_file}: empty; every key would be refused" in detail


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lambda file: file.unlink(), "cannot be read: No such file"),
        (lambda file: file.chmod(0o644), "is open to others"),
        (lambda file: file.chmod(0o620), "can be written by others"),
        (lambda file: file.write_text("{"), "is not a valid key file"),
    ],
)
async def test_a_file_that_cannot_be_used_fails_the_check_and_the_start(key_file, harm, text):
    add_key(key_file)
    harm(key_file)
    ok, detail = await only_check()
    assert not ok
    assert text in detail
    with pytest.raises(StartupError) as caught:
        make_authenticator(load_settings())
    assert text in caught.value.message
    assert "lot-grpc check" in caught.value.message


async def test_a_file_that_is_missing_is_made_by_a_command(key_file):
    key_file.unlink(missing_ok=True)
    assert (await only_check())[1].endswith(
        "No such file or directory; `lot-grpc keys create` makes it"
    )


# --- tokens -----------------------------------------------------------------------------------


async def test_the_keys_of_the_issuer_are_counted(issuer: Issuer):
    assert await only_check() == (True, f"1 key of https://id.example at {issuer.url}")


async def test_an_issuer_that_is_away_fails_the_check_and_not_the_start(issuer: Issuer):
    issuer.status = 503
    ok, detail = await only_check()
    assert not ok
    assert detail == (f"{issuer.url} returned 503; until it can be read, no token is accepted")
    authenticator = make_authenticator(load_settings())
    assert authenticator is not None
    await authenticator.close()


@pytest.mark.parametrize(("behind", "word"), [(3600, "ahead of"), (-3600, "behind")])
async def test_a_clock_that_is_off_fails_the_check(issuer: Issuer, behind, word):
    issuer.clock_behind = behind
    ok, detail = await only_check()
    assert not ok
    assert f"s {word} that of the issuer" in detail


async def test_a_file_of_keys_is_needed_at_the_start(issuer, tmp_path, monkeypatch):
    jwks = tmp_path / "jwks.json"
    jwks.write_bytes(key_set())
    jwks.chmod(0o644)
    monkeypatch.setenv("LOT_OIDC_JWKS", str(jwks))
    assert (await only_check())[0]
    assert make_authenticator(load_settings()) is not None
    jwks.unlink()
    assert not (await only_check())[0]
    with pytest.raises(StartupError, match="No such file"):
        make_authenticator(load_settings())


# --- settings ---------------------------------------------------------------------------------

WHOLE = {"ISSUER": "https://id.example", "AUDIENCE": "lot", "JWKS": "https://id.example/keys"}


def problems(monkeypatch, **settings: str) -> str:
    for name, value in settings.items():
        monkeypatch.setenv(f"LOT_OIDC_{name}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return "\n".join(caught.value.problems)


@pytest.mark.parametrize("name", WHOLE)
def test_an_issuer_needs_its_audience_and_keys(monkeypatch, name):
    rest = {key: value for key, value in WHOLE.items() if key != name}
    assert f"also need LOT_OIDC_{name}" in problems(monkeypatch, **rest)


def test_a_claim_without_an_issuer_is_a_mistake(monkeypatch):
    assert "also need LOT_OIDC_ISSUER and" in problems(monkeypatch, ROLE_CLAIM="role")


@pytest.mark.parametrize(
    ("jwks", "text"),
    [
        ("http://id.example/keys", "is not encrypted"),
        ("http://10.0.0.1/keys", "is not encrypted"),
        ("ftp://id.example/keys", "should be a path, or an https URL"),
        ("file:///etc/keys", "should be a path, or an https URL"),
        ("https://user:hidden@id.example/keys", "without a user"),
        ("https://id.example/keys#x", "should be a path, or an https URL"),
    ],
)
def test_keys_come_from_a_path_or_over_https(monkeypatch, jwks, text):
    said = problems(monkeypatch, **(WHOLE | {"JWKS": jwks}))
    assert text in said
    assert "hidden" not in said


@pytest.mark.parametrize(
    "jwks",
    ["http://127.0.0.1:1/k", "http://[::1]/k", "http://localhost/k", "https://x/k?p=1", "a/b.json"],
)
def test_this_machine_may_be_asked_without_encryption(monkeypatch, jwks):
    for name, value in (WHOLE | {"JWKS": jwks}).items():
        monkeypatch.setenv(f"LOT_OIDC_{name}", value)
    assert load_settings().authenticates
