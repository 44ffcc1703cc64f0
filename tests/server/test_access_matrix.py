"""Every RPC, called by everyone who may and may not.

The answers are computed from what the contract declares, by rules written out once more here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc.aio
import pytest

from lot_grpc.auth.authenticator import Authenticator
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.pb.lot.v1 import access_pb2
from lot_grpc.server.guards import Guards
from lot_grpc.testing.in_memory import InMemoryStore
from tests.auth.keys import NOW, add_key, altered, change_key
from tests.contract.clock import FixedClock
from tests.server.examples import EXAMPLES, example, method_of, path_of, prepare
from tests.server.keys import Keys, metadata_of, principal
from tests.server.service import Lot, serving
from tests.server.wire import Failure, failure_of

HERE, ELSEWHERE = "team-a:one", "team-b"

GRANTS: dict[str, tuple[str, ...]] = {
    "reader": (f"reader {HERE}",),
    "writer": (f"writer {HERE}",),
    "admin": (f"admin {HERE}",),
    "other": (f"admin {ELSEWHERE}",),
    "similar": ("admin team-a", "admin team-a:on", "admin team-a:one2", "admin Team-a:one"),
    "prefix-reader": ("reader team-a:*",),
    "prefix-admin": ("admin team-a:*",),
    "other-prefix": ("admin team-b*", "admin team-a:one:*"),
    "two": (f"reader {HERE}", "admin team-b*"),
    "rising": (f"reader {HERE}", "writer team-a:*", "reader *"),
    "all-reader": ("reader *",),
    "all-writer": ("writer *",),
    "all-admin": ("admin *",),
    "nothing": (),
}
"""Who calls, and with which grants; the key of each is its name."""

REFUSED = {"expired": "expired", "revoked": "revoked"}
WITHOUT = {"": "CREDENTIALS_REQUIRED"} | dict.fromkeys(("wrong", *REFUSED), "CREDENTIALS_INVALID")
"""The keys of those who are nobody, and the reason that each gets."""

ACCESS = {
    "CREDENTIALS_REQUIRED": "UNAUTHENTICATED",
    "CREDENTIALS_INVALID": "UNAUTHENTICATED",
    "NAMESPACE_DENIED": "PERMISSION_DENIED",
    "ROLE_REQUIRED": "PERMISSION_DENIED",
    "NAMESPACE_REQUIRED": "INVALID_ARGUMENT",
}
"""The reasons of refusals, and their codes."""


def keys() -> Keys:
    made = Keys(*(principal(name, *grants) for name, grants in GRANTS.items()))
    made.refused.update(REFUSED)
    return made


# --- the rules once more --------------------------------------------------------------------------

LEVELS = ["reader", "writer", "admin"]


def level(grants: tuple[str, ...], namespace: str | None) -> int:
    """The highest role in a namespace, in all (``*``) or in any (None); -1 without one."""
    found = [-1]
    for grant in grants:
        role, pattern = grant.split()
        prefix = pattern.removesuffix("*")
        covered = namespace is None or (
            pattern == "*"
            or (pattern == namespace != "*")
            or (prefix != pattern and namespace != "*" and namespace[: len(prefix)] == prefix)
        )
        if covered:
            found.append(LEVELS.index(role))
    return max(found)


def own(grants: tuple[str, ...]) -> str:
    """The namespace of a request without one."""
    patterns = [grant.split()[1] for grant in grants]
    whole = [one for one in patterns if "*" not in one]
    return whole[0] if whole else "default" if "*" in patterns else ""


def expected(name: str, grants: tuple[str, ...], request: Any) -> str:
    """The reason of the refusal; empty if the call may be made."""
    rule = method_of(name).GetOptions().Extensions[access_pb2.access]
    needed = rule.role - 1
    if rule.scope == access_pb2.ACCESS_SCOPE_SERVER or (
        rule.server_scope_field and getattr(request, rule.server_scope_field)
    ):
        return "" if level(grants, "*") >= needed else "ROLE_REQUIRED"
    namespace = request.namespace or own(grants)
    if not namespace:
        if rule.scope != access_pb2.ACCESS_SCOPE_ANY:
            return "NAMESPACE_REQUIRED"
        return "" if level(grants, None) >= needed else "ROLE_REQUIRED"
    if level(grants, namespace) < 0:
        return "NAMESPACE_DENIED"
    if level(grants, namespace) < needed:
        return "ROLE_REQUIRED"
    further = getattr(request, rule.read_namespaces_field) if rule.read_namespaces_field else ()
    return "NAMESPACE_DENIED" if any(level(grants, one) < 0 for one in further) else ""


# --- the calls ------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a call; ``raw`` is the answer."""

    reason: str = ""
    failure: Failure | None = None
    raw: bytes = b""


async def attempt(lot: Lot, name: str, request: Any, key: str) -> Outcome:
    """Make a call; of a stream, only up to the first answer."""
    for _ in range(50):
        try:
            return Outcome(raw=await _answer(lot, name, request.SerializeToString(), key))
        except grpc.aio.AioRpcError as error:
            # A client that was refused while it sent its first message may not learn why.
            if "Internal error from Core" not in (error.details() or ""):
                failed = failure_of(error)
                return Outcome(failed.reason, failed)
    raise AssertionError(f"{name} was never answered")


async def _answer(lot: Lot, name: str, raw: bytes, key: str) -> bytes:
    method = method_of(name)
    kind = "stream" if method.client_streaming else "unary"
    kind += "_stream" if method.server_streaming else "_unary"
    call = getattr(lot.channel, kind)(path_of(name))(
        _once(raw) if method.client_streaming else raw,
        metadata=metadata_of(key) if key else None,
    )
    try:
        async with asyncio.timeout(30):
            answer = await (anext(aiter(call), b"") if method.server_streaming else call)
        return bytes(answer)
    finally:
        call.cancel()


async def _once(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


def requests_of(name: str) -> list[Any]:
    """The requests of one RPC: in the namespace, in another, in none; all that it can reach."""
    rule = method_of(name).GetOptions().Extensions[access_pb2.access]
    made = [example(name, namespace) for namespace in (HERE, ELSEWHERE, "team-c", "")]
    if rule.server_scope_field:
        for namespace in (HERE, ""):
            made.append(example(name, namespace))
            setattr(made[-1], rule.server_scope_field, True)
    if rule.read_namespaces_field:
        for further in ([HERE], [ELSEWHERE], [HERE, ELSEWHERE]):
            made.append(example(name, HERE))
            getattr(made[-1], rule.read_namespaces_field).extend(further)
    return made


async def mistakes(lot: Lot, caller: str, key: str) -> list[tuple[str, str, str, str]]:
    """What a caller was refused, or not, against the rules."""
    wrong = []
    for name in sorted(EXAMPLES):
        for request in requests_of(name):
            done = await attempt(lot, name, request, key)
            # With another reason it was carried out; the examples are not all possible twice.
            refused = done.reason if done.reason in ACCESS else ""
            answer = expected(name, GRANTS[caller], request)
            if refused != answer:
                wrong.append((name, request.namespace, done.reason, answer))
            if refused:
                assert done.failure is not None
                assert done.failure.code == ACCESS[refused]
    return wrong


@pytest.mark.parametrize("caller", [*GRANTS])
async def test_everyone_may_do_what_the_contract_says_and_no_more(caller):
    async with serving(guards=Guards(authenticator=keys())) as lot:
        await prepare(lot.on(HERE).by("all-admin"))
        assert not await mistakes(lot, caller, caller)


@pytest.mark.parametrize("caller", ["reader", "writer", "admin", "other", "prefix-admin"])
async def test_keys_of_a_key_file_may_do_what_the_contract_says_and_no_more(caller, tmp_path):
    path = tmp_path / "keys.json"
    texts = {}
    for name in (caller, "all-admin"):
        [(role, pattern)] = [grant.split() for grant in GRANTS[name]]
        texts[name] = add_key(path, name=name, role=role, namespaces=(pattern,))
    authenticator = Authenticator(KeyVerifier(path), None)
    async with serving(guards=Guards(authenticator=authenticator)) as lot:
        await prepare(lot.on(HERE).by(texts["all-admin"]))
        assert not await mistakes(lot, caller, texts[caller])
    await authenticator.close()


@pytest.mark.parametrize("state", ["wrong", "expired", "revoked"])
async def test_a_key_that_is_not_valid_may_do_nothing(state, tmp_path):
    path = tmp_path / "keys.json"
    good = add_key(path, name="good", role="admin", namespaces=("*",))
    bad = add_key(path, name="bad", role="admin", namespaces=("*",))
    if state == "wrong":
        bad = altered(good)["wrong secret"]
    else:
        change_key(path, "bad", **{f"{state.removesuffix('d')}_time": NOW})
    authenticator = Authenticator(KeyVerifier(path), None)
    async with serving(guards=Guards(authenticator=authenticator)) as lot:
        await prepare(lot.on(HERE).by(good))
        for name in sorted(EXAMPLES):
            done = await attempt(lot, name, example(name, HERE), bad)
            assert done.reason == "CREDENTIALS_INVALID", name
    await authenticator.close()


@pytest.mark.parametrize("key", [*WITHOUT])
async def test_nobody_may_do_anything(key):
    async with serving(guards=Guards(authenticator=keys())) as lot:
        await prepare(lot.on(HERE).by("all-admin"))
        for name in sorted(EXAMPLES):
            for request in requests_of(name):
                done = await attempt(lot, name, request, key)
                assert done.reason == WITHOUT[key], name


def test_every_rpc_is_in_the_matrix():
    from tests.server.service import SERVICES

    names = {f"{s.name}.{method.name}" for s in SERVICES.values() for method in s.methods}
    assert names == set(EXAMPLES)


# --- what a refusal shows -------------------------------------------------------------------------


class WatchedStore:
    """A store that counts what it is asked."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls += 1
        return getattr(self._inner, name)


async def test_a_refusal_is_the_same_whether_or_not_it_exists_and_asks_the_store_nothing():
    store: Any = WatchedStore(InMemoryStore(FixedClock()))
    async with serving(store, guards=Guards(authenticator=keys())) as lot:
        await prepare(lot.on(HERE).by("all-admin"))
        before = store.calls
        for name in sorted(EXAMPLES):
            texts = set()
            for namespace in (HERE, "team-z:one"):  # only the first of the two exists
                done = await attempt(lot, name, example(name, namespace), "other")
                assert done.failure is not None, name
                shown = done.failure
                assert shown.reason in ("NAMESPACE_DENIED", "ROLE_REQUIRED"), name
                whole = f"{shown.code} {shown.reason} {shown.message} {shown.metadata}"
                texts.add(whole.replace(namespace, ""))
                assert set(shown.details) == {"ErrorInfo"}
            assert len(texts) == 1, name
        assert store.calls == before


async def test_unknown_rpcs_and_reflection_need_credentials_and_health_does_not():
    async with serving(guards=Guards(authenticator=keys())) as lot:
        health = await lot.channel.unary_unary("/grpc.health.v1.Health/Check")(b"")
        assert health == b"\x08\x01"  # SERVING
        for path in ("/lot.v1.MemoryService/Nothing", "/lot.v9.NoService/Nothing"):
            for key, reason in {**WITHOUT, "reader": "UNIMPLEMENTED"}.items():
                metadata = metadata_of(key) if key else None
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await lot.channel.unary_unary(path)(b"", metadata=metadata)
                failed = failure_of(error.value)
                assert (failed.reason == reason) or (
                    key == "reader" and failed.code == "UNIMPLEMENTED"
                )
        for version in ("v1", "v1alpha"):
            path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
            for key in (*WITHOUT, "reader"):
                metadata = metadata_of(key) if key else None
                call = lot.channel.stream_stream(path)(metadata=metadata)
                if key == "reader":
                    await call.write(b"\x3a\x00")  # list_services
                    assert b"lot.v1.MemoryService" in await call.read()
                    call.cancel()
                else:
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await anext(aiter(call))
                    assert failure_of(error.value).reason == WITHOUT[key]
