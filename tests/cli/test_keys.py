"""`lot-grpc keys`: what it writes, what it shows, and what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lot_grpc.auth.key_file import last_use_file, read_keys, write_last_use
from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.times import duration
from lot_grpc.domain.api_key import KEY, key_hash


@pytest.fixture
def keys(runner, key_file):
    """Run a `keys` command that works; what it prints."""

    def run(*arguments: str) -> str:
        result = runner.invoke(command_line, ["keys", *arguments])
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return run


@pytest.fixture
def refused(runner, key_file):
    """Run a `keys` command that does not; its exit code and what it says."""

    def run(*arguments: str) -> tuple[int, str]:
        result = runner.invoke(command_line, ["keys", *arguments])
        assert result.stdout == ""
        said = "".join(letter for letter in result.stderr if letter not in "│╭╮╰╯─")
        return result.exit_code, " ".join(said.split())

    return run


PLANNER = ("create", "planner", "-n", "team-a:*", "-n", "shared", "--role", "writer")


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_key_is_shown_once_alone_on_standard_output(runner, key_file):
    result = runner.invoke(command_line, ["keys", *PLANNER, "--expires", "90d"])
    text = result.stdout.removesuffix("\n")
    assert KEY.fullmatch(text)
    assert "planner" in result.stderr
    assert "shown only now" in result.stderr
    assert text not in result.stderr
    [key] = read_keys(key_file)
    assert (key.name, key.role, key.namespaces) == ("planner", "writer", ("team-a:*", "shared"))
    assert key.hash == key_hash(text)
    assert key.expire_time == key.create_time + timedelta(days=90)
    assert text.rpartition("_")[2] not in key_file.read_text()


def test_json_carries_the_key_when_it_is_made_and_never_again(keys, key_file):
    made = json.loads(keys(*PLANNER, "--own-namespace", "team-a:x", "--json"))
    secret = made.pop("key").rpartition("_")[2]
    assert (made["name"], made["state"], made["own_namespace"]) == ("planner", "valid", "team-a:x")
    [listed] = rows(keys("list", "--json"))
    assert listed == made
    shown = keys("list") + keys("list", "--json") + keys("revoke", "planner", "--json")
    assert secret not in shown
    assert read_keys(key_file)[0].hash not in shown
    assert "hash" not in shown


def test_limits_and_a_certificate_can_be_given(keys, key_file):
    made = keys(*PLANNER[:2], "-n", "a", "-r", "reader", "--san", "spiffe://x/y")
    assert "the certificate of spiffe://x/y, is reader in a" in made
    keys("create", "slow", "-n", "a", "-r", "WRITER", "--calls-per-second", "2.5",
         "--concurrent-calls", "3")  # fmt: skip
    certificate, slow = read_keys(key_file)
    assert (certificate.san, certificate.hash) == ("spiffe://x/y", "")
    assert (slow.calls_per_second, slow.concurrent_calls) == (2.5, 3)


def test_the_list_shows_state_and_last_use(keys, key_file):
    key_file.write_text('{"version": 1}')
    key_file.chmod(0o600)
    assert keys("list") == "There are no keys.\n"
    keys(*PLANNER)
    keys("create", "ops", "-n", "*", "-r", "admin")
    keys("revoke", "ops")
    planner, ops = read_keys(key_file)
    used = datetime(2026, 3, 1, 12, tzinfo=UTC)
    write_last_use(key_file, {planner.id: used.timestamp()}, frozenset([planner.id, ops.id]))
    first, second = rows(keys("list", "--json"))
    assert (first["last_use_time"], second["last_use_time"]) == (used.isoformat(), None)
    assert (first["state"], second["state"]) == ("valid", "revoked")
    table = keys("list")
    assert "2026-03-01" in table
    assert "revoked" in table
    last_use_file(key_file).write_text("{")
    assert rows(keys("list", "--json"))[0]["last_use_time"] is None


def test_a_key_is_revoked_by_name_or_id_and_once_more_without_effect(keys, key_file):
    keys(*PLANNER)
    assert "is revoked" in keys("revoke", "planner")
    [key] = read_keys(key_file)
    content = key_file.read_bytes()
    keys("revoke", key.id)
    assert key_file.read_bytes() == content
    keys(*PLANNER)
    assert [one.revoke_time is None for one in read_keys(key_file)] == [False, True]


def test_a_rotation_shows_the_new_key_and_keeps_the_old_one_for_the_grace(keys, key_file):
    old = keys(*PLANNER).strip()
    new = keys("rotate", "planner", "--grace", "1h").strip()
    [key] = read_keys(key_file)
    assert (key.hash, key.previous_hash) == (key_hash(new), key_hash(old))
    assert key.previous_expire_time is not None
    assert key.previous_expire_time - datetime.now(UTC) > timedelta(minutes=59)
    newest = json.loads(keys("rotate", key.id, "--expires", "1d", "--json"))
    [key] = read_keys(key_file)
    assert (key.hash, key.previous_hash) == (key_hash(newest["key"]), key_hash(new))
    assert key.previous_expire_time is not None
    assert key.previous_expire_time <= datetime.now(UTC)
    assert key.expire_time is not None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("create", "a b", "-n", "x", "-r", "reader"), "name should be"),
        (("create", "a", "-n", "x y", "-r", "reader"), "'x y' should be a name, a prefix"),
        (("create", "a", "-n", "x", "-r", "owner"), "'owner' is not one of reader, writer, admin"),
        (("create", "a", "-n", "x"), "--role"),
        (("create", "a", "-r", "reader"), "--namespace"),
        (("create", "-n", "x", "-r", "reader"), "NAME"),
        (("create", "a", "-n", "x", "-r", "reader", "--expires", "soon"), "not a duration"),
        (("create", "a", "-n", "x", "-r", "reader", "--expires", "90"), "not a duration"),
        (("create", "a", "-n", "x", "-r", "reader", "--expires", "-1d"), "not a duration"),
        (("create", "a", "-n", "x", "-r", "reader", "--expires", "0s"), "in the future"),
        (("create", "a", "-n", "x", "-r", "reader", "--expires", "9999999w"), "year 9999"),
        (("create", "a", "-n", "x", "-r", "reader", "--own-namespace", "y"), "that the key covers"),
        (("create", "a", "-n", "x", "-r", "reader", "--san", "a b"), "without spaces"),
        (("create", "planner", "-n", "x", "-r", "reader"), "would belong to two keys"),
        (("revoke", "nobody"), "there is no key 'nobody'"),
        (("rotate", "nobody"), "there is no key 'nobody'"),
        (("rotate", "planner", "--grace", "1"), "not a duration"),
    ],
)
def test_wrong_usage_says_what_to_give_and_does_nothing(keys, refused, key_file, arguments, text):
    keys(*PLANNER)
    content = key_file.read_bytes()
    code, said = refused(*arguments)
    assert code == 2
    assert text in said
    assert key_file.read_bytes() == content


def test_without_a_key_file_in_the_settings_it_is_asked_for(refused, monkeypatch):
    monkeypatch.delenv("LOT_AUTH_KEYS")
    for arguments in (PLANNER, ("list",), ("revoke", "a"), ("rotate", "a")):
        code, said = refused(*arguments)
        assert code == 2
        assert "LOT_AUTH_KEYS is not set" in said


def test_a_file_that_cannot_be_used_is_told_and_left_alone(keys, refused, key_file):
    code, said = refused("list")
    assert (code, "No such file" in said) == (1, True)
    keys(*PLANNER)
    key_file.chmod(0o644)
    for arguments in (("list",), ("revoke", "planner"), ("rotate", "planner")):
        code, said = refused(*arguments)
        assert (code, "is open to others (mode 0644)" in said) == (1, True)
    key_file.chmod(0o600)
    key_file.write_text("{")
    code, said = refused("create", "b", "-n", "x", "-r", "reader")
    assert (code, "is not a valid key file" in said, key_file.read_text()) == (1, True, "{")
    assert "nothing was changed" in said


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5h", 5400), (" 2d ", 172_800), ("1w", 604_800)]
)
def test_durations_have_the_units_of_times(text, seconds):
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "h", "1y", "-1h", "1h30min", "1e9w", "9" * 400 + "w"])
def test_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        duration(text)
