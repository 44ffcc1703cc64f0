"""The rules for making and ending keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lot_grpc.domain.access import Grant, Role, is_pattern
from lot_grpc.domain.api_key import (
    KEY,
    check_keys,
    find_key,
    key_hash,
    new_key,
    revoked,
    rotated,
)
from tests.auth.keys import NOW, make_key

HOUR = timedelta(hours=1)


def test_a_new_key_is_random_and_only_its_hash_is_in_the_entry():
    (first, text), (second, other) = make_key(), make_key()
    assert text != other
    assert first.id != second.id
    found = KEY.fullmatch(text)
    assert found is not None
    assert found[1] == first.id
    assert first.hash == key_hash(text)
    assert text.rpartition("_")[2] not in repr(first)


def test_its_principal_has_its_name_for_an_id_and_its_limits():
    key, _ = make_key(
        namespaces=("team-a:*", "shared"),
        expire_time=NOW + HOUR,
        calls_per_second=2.5,
        concurrent_calls=3,
    )
    caller = key.principal
    assert (caller.id, caller.name, caller.namespace) == ("key:planner", "planner", "shared")
    assert caller.grants == (Grant(Role.WRITER, "team-a:*"), Grant(Role.WRITER, "shared"))
    assert (caller.calls_per_second, caller.concurrent_calls) == (2.5, 3)
    assert caller.expire_time == (NOW + HOUR).timestamp()
    assert "key:" + key.id != caller.id


@pytest.mark.parametrize(
    ("namespaces", "own", "found"),
    [
        (("a",), "", "a"),
        (("*",), "", "default"),
        (("t:*",), "", ""),
        (("t:*",), "t:x", "t:x"),
        (("*",), "x", "x"),
    ],
)
def test_the_own_namespace_is_the_given_one_or_the_first_whole_name(namespaces, own, found):
    assert make_key(namespaces=namespaces, namespace=own)[0].principal.namespace == found


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": ""}, "name should"),
        ({"name": "a b"}, "name should"),
        ({"name": "-a"}, "name should"),
        ({"name": "a" * 65}, "name should"),
        ({"name": "a\n"}, "name should"),
        ({"name": "é"}, "name should"),
        ({"namespaces": ()}, "at least one"),
        ({"namespaces": ("a b",)}, "'a b' should be a name, a prefix"),
        ({"namespaces": ("a*b",)}, "should be a name"),
        ({"namespaces": ("**",)}, "should be a name"),
        ({"namespaces": ("",)}, "should be a name"),
        ({"namespaces": ("a\n",)}, "should be a name"),
        ({"namespace": "b"}, "should be a full name that the key covers"),
        ({"namespaces": ("t:*",), "namespace": "t:*"}, "should be a full name that"),
        ({"namespaces": ("*",), "namespace": "a b"}, "should be a full name that"),
        ({"san": "a b"}, "without spaces"),
        ({"san": "é"}, "ASCII"),
        ({"san": "a" * 256}, "1 to 255"),
        ({"calls_per_second": -1.0}, "0 or more"),
        ({"calls_per_second": float("nan")}, "0 or more"),
        ({"calls_per_second": float("inf")}, "0 or more"),
        ({"concurrent_calls": -1}, "0 or more"),
        ({"expire_time": NOW}, "in the future"),
        ({"expire_time": datetime(2030, 1, 1)}, "offset"),  # noqa: DTZ001 - it is the mistake
    ],
)
def test_a_malformed_field_is_refused_with_what_it_should_be(fields, text):
    with pytest.raises(ValueError, match=text):
        make_key(**fields)


def test_an_entry_has_a_hash_or_a_certificate():
    key, _ = make_key()
    with pytest.raises(ValueError, match="exactly one of hash and san"):
        replace(key, san="a")
    with pytest.raises(ValueError, match="exactly one of hash and san"):
        replace(key, hash="")
    with pytest.raises(ValueError, match="64 hexadecimal"):
        replace(key, hash=key.hash.upper())
    with pytest.raises(ValueError, match="set together"):
        replace(key, previous_hash=key.hash)


@pytest.mark.parametrize("fields", [{}, {"san": "a.example"}])
def test_of_the_keys_with_a_name_or_certificate_one_is_not_revoked(fields):
    key, _ = make_key(**fields)
    with pytest.raises(ValueError, match="name 'planner' would belong to two keys"):
        make_key((key,), **fields)
    again, _ = make_key((revoked(key, NOW),), **fields)
    check_keys((revoked(key, NOW), again))
    assert find_key((revoked(key, NOW), again), key.name) == again
    assert find_key((revoked(key, NOW), again), key.id).id == key.id


def test_two_certificates_of_other_names_may_not_share_an_alternative_name():
    key, _ = make_key(san="a.example")
    with pytest.raises(ValueError, match="would belong to two"):
        make_key((key,), name="other", san="a.example")


def test_an_unknown_name_is_no_key():
    with pytest.raises(ValueError, match="there is no key 'x'; `lot-grpc keys list`"):
        find_key((make_key()[0],), "x")


def test_it_is_valid_until_it_expires_and_revoked_whatever_the_clock_says():
    key, _ = make_key(expire_time=NOW + HOUR)
    assert key.state(NOW) == key.state(NOW + HOUR - timedelta(microseconds=1)) == "valid"
    assert key.state(NOW + HOUR) == "expired"
    assert revoked(key, NOW + HOUR).state(NOW) == "revoked"
    assert revoked(revoked(key, NOW), NOW + HOUR).revoke_time == NOW


def test_a_rotation_keeps_everything_but_the_secret():
    key, text = make_key(expire_time=NOW + HOUR)
    made, other = rotated(key, NOW, NOW + HOUR, None)
    assert other != text
    assert made.hash == key_hash(other)
    assert (made.previous_hash, made.previous_expire_time) == (key.hash, NOW + HOUR)
    assert replace(made, hash=key.hash, previous_hash="", previous_expire_time=None) == key
    assert made.principal == key.principal
    assert rotated(key, NOW, NOW, NOW + 2 * HOUR)[0].expire_time == NOW + 2 * HOUR


@pytest.mark.parametrize("now", [NOW, NOW + HOUR, NOW + 2 * HOUR], ids=["before", "at", "after"])
def test_a_grace_does_not_outlive_the_expiry_of_the_old_key(now):
    """Neither does it bring back a key that has expired."""
    key, _ = make_key(expire_time=NOW + HOUR)
    made, _ = rotated(key, now, now + 24 * HOUR, now + 48 * HOUR)
    assert made.previous_expire_time == NOW + HOUR
    assert made.expire_time == now + 48 * HOUR


def test_what_is_over_or_no_key_is_not_rotated():
    key, _ = make_key(expire_time=NOW + HOUR)
    with pytest.raises(ValueError, match="planner is revoked; create another"):
        rotated(revoked(key, NOW), NOW, NOW, None)
    with pytest.raises(ValueError, match="planner is expired; give a new expiry"):
        rotated(key, NOW + HOUR, NOW, None)
    assert rotated(key, NOW + HOUR, NOW + HOUR, NOW + 2 * HOUR)[0].state(NOW + HOUR) == "valid"
    with pytest.raises(ValueError, match="have its authority renew it"):
        rotated(make_key(san="a.example")[0], NOW, NOW, None)


def test_ids_never_repeat(monkeypatch):
    key, _ = make_key()
    ids = iter([key.id, key.id, "0badcafe", "f" * 64])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(ids))
    assert new_key((key,), NOW, name="b", role="reader", namespaces=("a",))[0].id == "0badcafe"


@pytest.mark.parametrize("text", ["a", "a*", "team-a:*", "*", "A.b:c-d_e", "a" * 128 + "*"])
def test_names_prefixes_and_everything_are_patterns(text):
    assert is_pattern(text)


@pytest.mark.parametrize("text", ["", ":a", "a*b", "*a", "**", "a **", "a\n", "é", "a" * 129])
def test_nothing_else_is_a_pattern(text):
    assert not is_pattern(text)
