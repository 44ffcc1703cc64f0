"""Who makes the calls of a fuzz against a server with authentication: some may, some may not."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf.descriptor import MethodDescriptor

from lot_grpc.domain.access import Role
from lot_grpc.server.access_rule import Rule
from tests.e2e.process import run
from tests.fuzz.calls import Metadata
from tests.fuzz.making import NAMESPACES

ADMIN = "admin"
_ROLES = {ADMIN: Role.ADMIN, "writer": Role.WRITER, "reader": Role.READER}
_NOBODY = ("", "wrong", "expired", "garbage")
_SHARES = {ADMIN: 10, "writer": 4, "reader": 3} | dict.fromkeys(_NOBODY, 1)
_EXPIRES_AT_ONCE = "1s"


class Keys:
    """Keys of a server's key file, and what stands for one without being one."""

    def __init__(self, data: Path, settings: Mapping[str, str]) -> None:
        """Make them with the command."""
        made = {
            name: _made(data, settings, name, str(role.name).lower(), namespace)
            for (name, role), namespace in zip(
                _ROLES.items(), ("*", NAMESPACES[0], f"{NAMESPACES[0][:2]}*"), strict=True
            )
        }
        made["expired"] = _made(
            data, settings, "expired", "admin", "*", "--expires", _EXPIRES_AT_ONCE
        )
        self._keys = made | {"wrong": made[ADMIN][:-4] + "0000"}

    def choose(self, rng: random.Random) -> str:
        """Who makes a call."""
        return rng.choices(list(_SHARES), list(_SHARES.values()))[0]

    def metadata(self, who: str) -> Metadata:
        """What it sends."""
        if not who:
            return ()
        if who == "garbage":
            return (("authorization", "Bearer  lot_" + "A" * 3000), ("authorization", "x"))
        return (("authorization", f"Bearer {self._keys[who]}"),)


def not_allowed(who: str, method: MethodDescriptor, code: str) -> str:
    """What is wrong with an answer, if it is not one that the caller may get."""
    rule = Rule.of(method)
    if method.containing_service.name == "Health" or code == "CUT":
        return ""
    if who in _NOBODY:
        return "" if code in ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED") else f"{code} without a key"
    if code == "OK" and rule is not None and _ROLES[who] < rule.role:
        return f"allowed to a {who}"
    return "" if code != "UNAUTHENTICATED" else f"the key of {who} was refused"


class Keyed(
    grpc.aio.UnaryUnaryClientInterceptor,
    grpc.aio.UnaryStreamClientInterceptor,
    grpc.aio.StreamUnaryClientInterceptor,
    grpc.aio.StreamStreamClientInterceptor,
):
    """Sends a key with every call of a channel."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    async def _intercept(self, continuation: Any, details: Any, request: Any) -> Any:
        return await continuation(details._replace(metadata=self._metadata), request)

    intercept_unary_unary: Any = _intercept
    intercept_unary_stream: Any = _intercept
    intercept_stream_unary: Any = _intercept
    intercept_stream_stream: Any = _intercept


def _made(
    data: Path, settings: Mapping[str, str], name: str, role: str, namespace: str, *more: str
) -> str:
    ran = run(
        data,
        *("keys", "create", name, "--role", role, "--namespace", namespace, "--json", *more),
        settings=settings,
    )
    assert ran.code == 0, ran
    return str(json.loads(ran.stdout)["key"])
