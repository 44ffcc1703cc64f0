"""API keys: the entries of a key file, and the rules for making and ending them.

An entry holds the hash of a key, never the key. Instead of a key it may name a client certificate.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, TypeAlias

from lot_grpc.domain.access import EVERYTHING, Grant, Principal, Role, is_pattern, own_namespace

KEY: Final = re.compile(r"lot_([0-9a-f]{8})_[0-9a-f]{64}")
"""The form of a key: its id, which is no secret, and 256 random bits."""

RoleName: TypeAlias = Literal["reader", "writer", "admin"]

_ID = re.compile(r"[0-9a-f]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SAN = re.compile(r"[!-~]{1,255}")


def key_hash(key: str) -> str:
    """SHA-256 as hex: the bits of a key are random, so a slow hash would add nothing."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An entry of the key file.

    Attributes:
        id: Eight hexadecimal digits, also part of the key.
        name: For people; of two entries with one name, all but one are revoked.
        role: The role in each of the namespaces.
        namespaces: Names, prefixes such as ``team-a:*``, or ``*``.
        namespace: That of requests without one; empty: the first of ``namespaces`` that is a name.
        hash: ``key_hash`` of the key; empty for a certificate.
        san: A subject alternative name of a client certificate; empty for a key.
        create_time: When it was made.
        expire_time: From when on it is refused; None: never.
        revoke_time: When it was revoked; None: it was not.
        previous_hash: The hash before the last rotation; empty: there is none.
        previous_expire_time: From when on the key before the last rotation is refused.
        calls_per_second: Its rate limit; 0: the server's.
        concurrent_calls: Its limit of calls at once; 0: the server's.

    Raises:
        ValueError: A field is malformed, or two contradict each other.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    id: str
    name: str
    role: RoleName
    namespaces: tuple[str, ...]
    namespace: str = ""
    hash: str = ""
    san: str = ""
    create_time: datetime
    expire_time: datetime | None = None
    revoke_time: datetime | None = None
    previous_hash: str = ""
    previous_expire_time: datetime | None = None
    calls_per_second: float = 0.0
    concurrent_calls: int = 0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    def _problems(self) -> Iterable[str]:
        if not _ID.fullmatch(self.id):
            yield "id should be 8 hexadecimal digits"
        if not _NAME.fullmatch(self.name):
            yield "name should be 1 to 64 letters, digits and . _ @ -, the first a letter or digit"
        yield from _namespace_problems(self.namespaces, self.namespace)
        if bool(self.hash) == bool(self.san):
            yield "exactly one of hash and san should be set"
        if self.san and not _SAN.fullmatch(self.san):
            yield "san should be 1 to 255 ASCII characters without spaces"
        if any(one and not _HASH.fullmatch(one) for one in (self.hash, self.previous_hash)):
            yield "a hash should be 64 hexadecimal digits"
        if bool(self.previous_hash) != (self.previous_expire_time is not None):
            yield "previous_hash and previous_expire_time should be set together"
        times = (self.create_time, self.expire_time, self.revoke_time, self.previous_expire_time)
        if any(one is not None and one.tzinfo is None for one in times):
            yield "a time should have an offset, as in 2026-03-01T12:00:00Z"
        if not 0 <= self.calls_per_second < float("inf") or self.concurrent_calls < 0:
            yield "calls_per_second and concurrent_calls should be 0 or more"

    def state(self, now: datetime) -> Literal["valid", "expired", "revoked"]:
        """Whether it is accepted. Revoked counts at once, whatever the clock says."""
        if self.revoke_time is not None:
            return "revoked"
        return "expired" if self.expire_time is not None and self.expire_time <= now else "valid"

    @property
    def principal(self) -> Principal:
        """Who calls with it. Its id is the name, which outlives a rotation."""
        return Principal(
            id=f"cert:{self.san}" if self.san else f"key:{self.name}",
            name=self.name,
            grants=grants_of(self.role, self.namespaces),
            namespace=self.namespace or own_namespace(grants_of(self.role, self.namespaces)),
            calls_per_second=self.calls_per_second,
            concurrent_calls=self.concurrent_calls,
            expire_time=self.expire_time.timestamp() if self.expire_time else None,
        )


def grants_of(role: str, namespaces: Iterable[str]) -> tuple[Grant, ...]:
    """One role, by its name in lower case, on several namespaces."""
    return tuple(Grant(Role[role.upper()], one) for one in namespaces)


def _namespace_problems(patterns: Sequence[str], own: str) -> Iterable[str]:
    if not patterns:
        yield "namespaces should name at least one"
    for one in patterns:
        if not is_pattern(one):
            yield f"namespace {one!r} should be a name, a prefix such as team-a:*, or *"
    if own and not (
        is_pattern(own)
        and not own.endswith(EVERYTHING)
        and any(grant.covers(own) for grant in grants_of("reader", patterns))
    ):
        yield f"the own namespace {own!r} should be a full name that the key covers"


# --- the entries of a file ------------------------------------------------------------------------

Keys: TypeAlias = tuple[ApiKey, ...]


def check_keys(keys: Keys) -> None:
    """Raise ValueError if two entries cannot be told apart."""
    live = [one for one in keys if one.revoke_time is None]
    for what, values in (
        ("id", [one.id for one in keys]),
        ("name", [one.name for one in live]),
        ("san", [one.san for one in live if one.san]),
    ):
        for value, count in Counter(values).items():
            if count > 1:
                raise ValueError(
                    f"{what} {value!r} would belong to two keys; choose another, or revoke the key "
                    "that has it"
                )


def new_key(keys: Keys, now: datetime, **fields: Any) -> tuple[ApiKey, str]:
    """A new entry beside ``keys``, and its key; the latter is empty for a certificate.

    Raises:
        ValueError: A field is malformed, or the name or certificate is taken.
    """
    used = {one.id for one in keys}
    key_id = next(one for one in iter(lambda: secrets.token_hex(4), "") if one not in used)
    text = "" if fields.get("san") else _random_key(key_id)
    made = ApiKey(id=key_id, create_time=now, hash=key_hash(text) if text else "", **fields)
    if made.state(now) == "expired":
        raise ValueError("the expiry should be in the future")
    check_keys((*keys, made))
    return made, text


def find_key(keys: Keys, name: str) -> ApiKey:
    """The entry with a name or an id; one that is not revoked if there are several.

    Raises:
        ValueError: There is none.
    """
    found = [one for one in keys if name in (one.name, one.id)]
    if not found:
        raise ValueError(f"there is no key {name!r}; `lot-grpc keys list` shows them")
    return min(found, key=lambda one: one.revoke_time is not None)


def revoked(key: ApiKey, now: datetime) -> ApiKey:
    """The entry, refused from now on. Revoking it again changes nothing."""
    return key if key.revoke_time else replace(key, revoke_time=now)


def rotated(
    key: ApiKey, now: datetime, previous_expire_time: datetime, expire_time: datetime | None
) -> tuple[ApiKey, str]:
    """The entry with a new key, and that key. The present one is valid until a time, or its expiry.

    ``expire_time`` is that of the new key; None: that of the present one.

    Raises:
        ValueError: It is revoked, expired or a certificate.
    """
    if key.san:
        raise ValueError(f"{key.name} is a client certificate; have its authority renew it")
    text = _random_key(key.id)
    made = replace(
        key,
        hash=key_hash(text),
        expire_time=expire_time or key.expire_time,
        previous_hash=key.hash,
        previous_expire_time=min(previous_expire_time, key.expire_time or previous_expire_time),
    )
    if (state := made.state(now)) != "valid":
        hint = "give a new expiry (--expires)" if state == "expired" else "create another one"
        raise ValueError(f"{key.name} is {state}; {hint}")
    return made, text


def replaced(keys: Keys, key: ApiKey) -> Keys:
    """``keys`` with another entry in the place of the one with its id."""
    return tuple(key if one.id == key.id else one for one in keys)


def _random_key(id: str) -> str:
    return f"lot_{id}_{secrets.token_hex(32)}"
