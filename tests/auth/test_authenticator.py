"""Keys, tokens and certificates together."""

from __future__ import annotations

import asyncio
import hmac
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from lot_grpc.auth import files, key_file
from lot_grpc.auth import keys as keys_module
from lot_grpc.auth.authenticator import MAX_CREDENTIALS, Authenticator
from lot_grpc.auth.key_file import last_use_file, read_keys, read_last_use
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.auth.tokens import TokenVerifier
from lot_grpc.domain.access import Credentials, Principal
from lot_grpc.domain.api_key import key_hash
from lot_grpc.domain.errors import CredentialsInvalidError, CredentialsRequiredError
from tests.auth.issuer import token
from tests.auth.keys import NOW, Clock, add_key, altered, change_key
from tests.auth.test_tokens import RULES, Keys

HOUR = timedelta(hours=1)


@dataclass
class Lab:
    """An authenticator with a key file, tokens and a clock."""

    path: Path
    clock: Clock
    keys: KeyVerifier
    both: Authenticator

    async def of(self, *authorizations: str, names: tuple[str, ...] = ()) -> Principal:
        return await self.both.authenticate(Credentials(authorizations, names))

    async def refusal(self, *authorizations: str, names: tuple[str, ...] = ()) -> str:
        with pytest.raises(CredentialsInvalidError) as caught:
            await self.of(*authorizations, names=names)
        return caught.value.why


@pytest.fixture
def text(tmp_path: Path) -> str:
    """A key of the file."""
    return add_key(tmp_path / "keys.json")


@pytest.fixture
def lab(tmp_path: Path, text: str, monkeypatch) -> Lab:
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.0)
    path, clock = tmp_path / "keys.json", Clock()
    keys = KeyVerifier(path, clock)
    return Lab(path, clock, keys, Authenticator(keys, TokenVerifier(RULES, Keys(), clock)))


# --- keys -------------------------------------------------------------------------------------


async def test_a_key_tells_who_calls(lab, text):
    assert await lab.of(f"Bearer {text}") == read_keys(lab.path)[0].principal


@pytest.mark.parametrize("form", ["bearer {}", "BEARER {}", "Bearer   {}", " Bearer {}\t"])
async def test_the_word_bearer_may_be_written_in_any_case(lab, text, form):
    assert (await lab.of(form.format(text))).id == "key:planner"


@pytest.mark.parametrize(
    "form",
    [
        "{}", "", " ", "Bearer", "Bearer ", "Bearer\t{}", "Bearer{}", "Basic {}", "Bearer {} {}",
        "Bearer {},{}", "Bearer {}, Bearer {}", "Bearer Bearer {}", "Bearer\n{}", "Bearer {}\n",
        "Bearer {}\0", 'Bearer "{}"', "Bearer =\u00e9{}", "Bearer \ud800{}", "Token {}",
        "X Bearer {}",
    ],
)  # fmt: skip
async def test_anything_else_is_refused(lab, text, form):
    assert await lab.refusal(form.replace("{}", text))


async def test_several_authorizations_are_refused_even_if_each_is_right(lab, text):
    right = f"Bearer {text}"
    assert await lab.refusal(right, right) == "several authorization values"
    assert await lab.refusal("", right) == "several authorization values"


@pytest.mark.parametrize("what", altered(f"lot_{'1' * 8}_{'2' * 64}"))
async def test_what_is_nearly_a_key_is_refused(lab, text, what):
    wrong = altered(text)[what]
    with pytest.raises(CredentialsInvalidError) as caught:
        lab.keys.verify(wrong)
    assert wrong == "" or wrong not in caught.value.why
    with pytest.raises(CredentialsInvalidError):
        await lab.of(f"Bearer {wrong}") if wrong.strip() == wrong else lab.keys.verify(wrong)


async def test_the_log_tells_what_the_caller_is_not_told(lab, text):
    key = read_keys(lab.path)[0]
    wrong = altered(text)
    whys = {
        f"wrong secret for key {key.id}": wrong["wrong secret"],
        "no such key": wrong["unknown id"],
        "not of the form of a key": wrong["truncated"],
    }
    messages = set()
    for why, sent in whys.items():
        with pytest.raises(CredentialsInvalidError) as caught:
            await lab.of(f"Bearer {sent}")
        assert caught.value.why == why
        messages.add((caught.value.message, caught.value.reason, str(caught.value.metadata)))
    change_key(lab.path, "planner", expire_time=NOW)
    assert await lab.refusal(f"Bearer {text}") == f"key {key.id} (planner) is expired"
    change_key(lab.path, "planner", revoke_time=NOW)
    with pytest.raises(CredentialsInvalidError) as caught:
        await lab.of(f"Bearer {text}")
    assert caught.value.why == f"key {key.id} (planner) is revoked"
    messages.add((caught.value.message, caught.value.reason, str(caught.value.metadata)))
    assert len(messages) == 1
    for why in whys:
        assert why not in next(iter(messages))[0]


async def test_a_wrong_secret_shows_not_whether_the_key_is_revoked(lab, text):
    change_key(lab.path, "planner", revoke_time=NOW)
    assert "wrong secret" in await lab.refusal(f"Bearer {altered(text)['wrong secret']}")


async def test_an_unknown_key_is_hashed_and_compared_as_a_known_one_is(lab, text, monkeypatch):
    done: list[str] = []

    def compare(one: str, other: str) -> bool:
        done.append(f"compared {len(other)}")
        return hmac.compare_digest(one, other)

    def digest(one: str) -> str:
        done.append("hashed")
        return key_hash(one)

    monkeypatch.setattr(keys_module, "compare_digest", compare)
    monkeypatch.setattr(keys_module, "key_hash", digest)
    steps = []
    for one in (text, altered(text)["wrong secret"], altered(text)["unknown id"], "x"):
        done.clear()
        with suppress(CredentialsInvalidError):
            lab.keys.verify(one)
        steps.append(list(done))
    assert steps == [["hashed", "compared 64", "compared 64"]] * 4


async def test_it_expires_by_the_clock(lab, text):
    change_key(lab.path, "planner", expire_time=NOW + HOUR)
    lab.clock.now += 3599.9
    assert await lab.of(f"Bearer {text}")
    lab.clock.now += 0.1
    assert "is expired" in await lab.refusal(f"Bearer {text}")


async def test_a_rotated_key_is_valid_for_the_grace(lab, text):
    change_key(
        lab.path,
        "planner",
        hash=key_hash("other"),
        previous_hash=key_hash(text),
        previous_expire_time=NOW + HOUR,
    )
    assert await lab.of(f"Bearer {text}")
    lab.clock.now += 3600
    assert "was rotated" in await lab.refusal(f"Bearer {text}")


async def test_a_new_or_revoked_key_counts_without_a_restart(lab, text):
    other = add_key(lab.path, name="second", role="reader")
    assert (await lab.of(f"Bearer {other}")).id == "key:second"
    change_key(lab.path, "second", revoke_time=NOW)
    assert "is revoked" in await lab.refusal(f"Bearer {other}")
    assert await lab.of(f"Bearer {text}")


async def test_a_file_that_breaks_locks_nobody_out_and_lets_nobody_in(lab, text):
    add_key(lab.path, name="second")
    change_key(lab.path, "second", revoke_time=NOW)
    assert await lab.of(f"Bearer {text}")
    lab.path.unlink()
    with structlog.testing.capture_logs() as log:
        assert await lab.of(f"Bearer {text}")
        assert "no such key" in await lab.refusal(f"Bearer {altered(text)['unknown id']}")
    assert len(log) == 1


async def test_a_file_without_a_valid_key_is_told(lab, text):
    with structlog.testing.capture_logs() as log:
        change_key(lab.path, "planner", revoke_time=NOW)
        await lab.refusal(f"Bearer {text}")
    assert {"no key is valid, so no call with a key is accepted"} <= {one["event"] for one in log}


# --- several methods --------------------------------------------------------------------------


async def test_without_credentials_they_are_asked_for(lab):
    for names in ((), ("unknown.example",)):
        with pytest.raises(CredentialsRequiredError):
            await lab.of(names=names)


async def test_keys_and_tokens_are_told_apart(lab, text):
    assert (await lab.of(f"Bearer {text}")).id == "key:planner"
    assert (await lab.of(f"Bearer {token()}")).name == "agent-7"
    assert await lab.refusal("Bearer x") == "not of the form of a token"
    only_keys, only_tokens = Authenticator(lab.keys, None), lab.both._tokens
    with pytest.raises(CredentialsInvalidError) as caught:
        await only_keys.authenticate(Credentials((f"Bearer {token()}",)))
    assert caught.value.why == "not of the form of a key"
    with pytest.raises(CredentialsInvalidError) as caught:
        await Authenticator(None, only_tokens).authenticate(Credentials((f"Bearer {text}",)))
    assert caught.value.why == "this server accepts no keys"
    with pytest.raises(CredentialsRequiredError):
        await Authenticator(None, only_tokens).authenticate(Credentials((), ("a.example",)))


async def test_a_certificate_tells_who_calls(lab):
    add_key(lab.path, name="svc", role="reader", san="spiffe://example/svc")
    caller = await lab.of(names=("other.example", "spiffe://example/svc"))
    assert (caller.id, caller.name) == ("cert:spiffe://example/svc", "svc")
    for names in (("other.example",), ("spiffe://example/sv",), ("SPIFFE://example/svc",)):
        assert await lab.refusal(names=names) == "no key names the certificate"


async def test_a_certificate_may_not_be_two_callers(lab):
    add_key(lab.path, name="a", san="a.example")
    add_key(lab.path, name="b", san="b.example")
    assert "several keys" in await lab.refusal(names=("a.example", "b.example"))


async def test_a_revoked_certificate_is_refused_and_a_new_entry_for_it_counts(lab):
    add_key(lab.path, name="a", san="a.example")
    change_key(lab.path, "a", revoke_time=NOW)
    assert "is revoked" in await lab.refusal(names=("a.example",))
    add_key(lab.path, name="b", san="a.example")
    assert (await lab.of(names=("a.example",))).name == "b"


async def test_what_is_sent_counts_before_the_certificate_even_if_it_is_wrong(lab, text):
    add_key(lab.path, name="svc", san="a.example")
    assert (await lab.of(f"Bearer {text}", names=("a.example",))).id == "key:planner"
    assert await lab.refusal("Bearer lot_x", names=("a.example",))
    assert await lab.refusal("", names=("a.example",))


async def test_a_certificate_entry_is_no_key(lab):
    add_key(lab.path, name="svc", san="a.example")
    key = next(one for one in read_keys(lab.path) if one.san)
    for secret in ("-" * 64, "0" * 64, key_hash("")):
        assert await lab.refusal(f"Bearer lot_{key.id}_{secret}")


async def test_what_is_too_long_is_not_read(lab, text, monkeypatch):
    monkeypatch.setattr(keys_module, "key_hash", None)
    assert await lab.refusal(f"Bearer {text}{'a' * MAX_CREDENTIALS}") == "too long"


# --- last use ---------------------------------------------------------------------------------


async def test_the_last_use_is_written_beside_the_file(lab, text):
    await lab.keys.write_last_use()
    assert not last_use_file(lab.path).exists()
    await lab.of(f"Bearer {text}")
    lab.clock.now += 7
    await lab.of(f"Bearer {text}")
    with pytest.raises(CredentialsInvalidError):
        await lab.of(f"Bearer {altered(text)['wrong secret']}")
    await lab.both.close()
    key = read_keys(lab.path)[0]
    assert read_last_use(lab.path) == {key.id: NOW + timedelta(seconds=7)}
    assert last_use_file(lab.path).stat().st_mode & 0o077 == 0


async def test_several_servers_keep_the_latest_use_and_forget_keys_that_are_gone(lab, text):
    key = read_keys(lab.path)[0]
    late = (NOW + HOUR).timestamp()
    ids = frozenset([key.id, "0badcafe"])
    key_file.write_last_use(lab.path, {key.id: late, "0badcafe": late}, ids)
    await lab.of(f"Bearer {text}")
    await lab.keys.write_last_use()
    assert read_last_use(lab.path) == {key.id: NOW + HOUR}


@pytest.mark.parametrize("written", ["2999-01-01T00:00:00Z", "2026-01-01T00:00:00", "1"])
async def test_a_last_use_that_cannot_be_right_is_replaced(lab, text, written):
    """As one of a clock that was ahead, which would stay until then."""
    [key] = read_keys(lab.path)
    last_use_file(lab.path).write_text(f'{{"{key.id}": "{written}"}}')
    last_use_file(lab.path).chmod(0o600)
    await lab.of(f"Bearer {text}")
    await lab.keys.write_last_use()
    assert read_last_use(lab.path) == {key.id: NOW}


async def test_a_last_use_that_cannot_be_written_fails_no_call_and_is_said_once(lab, text):
    last_use_file(lab.path).mkdir()
    with structlog.testing.capture_logs() as log:
        for _ in range(3):
            await lab.of(f"Bearer {text}")
            await lab.keys.write_last_use()
    assert [one["event"] for one in log] == ["times of last use cannot be written"]
    last_use_file(lab.path).rmdir()
    await lab.keys.write_last_use()
    assert len(read_last_use(lab.path)) == 1


async def test_a_damaged_file_of_last_use_counts_as_none(lab, text):
    last_use_file(lab.path).write_bytes(b"{")
    assert read_last_use(lab.path) == {}
    await lab.of(f"Bearer {text}")
    await lab.keys.write_last_use()
    assert len(read_last_use(lab.path)) == 1


async def test_the_last_use_is_due_once_a_minute(lab, monkeypatch):
    assert not lab.keys.last_use_is_due
    later = time.monotonic() + keys_module.WRITE_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert lab.keys.last_use_is_due


# --- in the background ------------------------------------------------------------------------


async def test_it_follows_changes_by_itself_and_survives_a_bug(lab, text, monkeypatch):
    monkeypatch.setattr("lot_grpc.auth.authenticator.LOOK_SECONDS", 0.005)
    failures = iter([RuntimeError("a bug")])
    refresh = lab.keys.refresh

    def sometimes() -> None:
        for error in failures:
            raise error
        refresh()

    monkeypatch.setattr(lab.keys, "refresh", sometimes)
    with structlog.testing.capture_logs() as log:
        following = asyncio.create_task(lab.both.run())
        add_key(lab.path, name="second")
        async with asyncio.timeout(10):
            while len(lab.keys.keys) < 2:
                await asyncio.sleep(0.005)
        following.cancel()
    assert log[0]["event"] == "could not reload keys"


async def test_calls_go_on_while_the_file_changes(lab, text):
    """Every call with a good key is accepted, whatever is written meanwhile."""
    ended = asyncio.Event()

    async def calling() -> int:
        count = 0
        while not ended.is_set():
            assert (await lab.of(f"Bearer {text}")).id == "key:planner"
            count += 1
            await asyncio.sleep(0)
        return count

    calls = asyncio.create_task(calling())
    for number in range(20):
        await asyncio.to_thread(add_key, lab.path, name=f"n-{number}")
        await asyncio.to_thread(change_key, lab.path, f"n-{number}", revoke_time=datetime.now(UTC))
    ended.set()
    assert await calls > 20
    lab.keys.refresh()
    assert len(lab.keys.keys) == 21


def test_nothing_secret_is_in_a_representation(lab, text):
    secret = text.rpartition("_")[2]
    shown = f"{lab.keys!r} {lab.both!r} {replace(read_keys(lab.path)[0])!r}"
    assert secret not in shown
    assert text not in shown


def test_credentials_that_are_shown_by_mistake_show_no_secret():
    assert "lot_" not in repr(Credentials(("Bearer lot_1a2b3c4d_secret",)))
