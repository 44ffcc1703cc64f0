"""Who calls, and what it may do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from lot_grpc.domain.ids import DEFAULT_NAMESPACE

EVERYTHING = "*"
"""The pattern of all namespaces."""

_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\*?|\*")


def is_pattern(text: str) -> bool:
    """Whether it is a pattern of a grant."""
    return _PATTERN.fullmatch(text) is not None


class Role(IntEnum):
    """What a principal may do in a namespace. Each includes those before it."""

    READER = 1
    WRITER = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on the namespaces that ``pattern`` matches: a name, a prefix ``team-a:*`` or ``*``."""

    role: Role
    pattern: str

    def covers(self, namespace: str) -> bool:
        """Whether it applies to a namespace."""
        if self.pattern.endswith(EVERYTHING):
            return namespace.startswith(self.pattern[:-1])
        return namespace == self.pattern


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, authenticated.

    Attributes:
        id: Identifies it in bindings, limits and the audit log; survives the rotation of a key.
        name: For people.
        grants: What it may do; the highest role that covers a namespace counts.
        namespace: That of requests without one; empty if it has none.
        calls_per_second: Its rate limit; 0: the server's.
        concurrent_calls: Its limit of calls at once; 0: the server's.
        expire_time: When its credentials expire, in seconds since 1970; None: never.
    """

    id: str
    name: str
    grants: tuple[Grant, ...]
    namespace: str = ""
    calls_per_second: float = 0.0
    concurrent_calls: int = 0
    expire_time: float | None = None

    def role_in(self, namespace: str) -> Role | None:
        """The role in a namespace; None if it may do nothing there."""
        found: Role | None = None
        for one in self.grants:  # every call does it, and `max` takes three times as long
            if one.covers(namespace) and (found is None or one.role > found):
                found = one.role
        return found

    @property
    def server_role(self) -> Role | None:
        """The role in all namespaces at once; None without a grant on ``*``."""
        return max((one.role for one in self.grants if one.pattern == EVERYTHING), default=None)

    @property
    def highest_role(self) -> Role | None:
        """The highest role in any namespace."""
        return max((one.role for one in self.grants), default=None)

    def may_read(self, namespace: str) -> bool:
        """Whether the namespace exists for it."""
        return self.role_in(namespace) is not None


ANONYMOUS = Principal("", "", (Grant(Role.ADMIN, EVERYTHING),), DEFAULT_NAMESPACE)
"""Every caller of a server without authentication."""


def own_namespace(grants: Iterable[Grant]) -> str:
    """The namespace of requests without one: the first that is granted by its full name.

    ``default`` for a grant on everything; empty if there is only a prefix.
    """
    patterns = [one.pattern for one in grants]
    exact = [one for one in patterns if not one.endswith(EVERYTHING)]
    if exact:
        return exact[0]
    return DEFAULT_NAMESPACE if EVERYTHING in patterns else ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller sent to say who it is.

    Attributes:
        authorizations: The values of ``authorization`` metadata, usually one.
        certificate_names: Subject alternative names of its verified client certificate.
    """

    authorizations: tuple[str, ...] = field(default=(), repr=False)
    certificate_names: tuple[str, ...] = ()
