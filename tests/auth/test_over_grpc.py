"""Authentication as callers meet it: over gRPC, with whatever metadata can be sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from lot_grpc.auth import files
from lot_grpc.auth.authenticator import Authenticator
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.auth.tokens import TokenVerifier
from lot_grpc.pb.lot.v1 import memory_service_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc as rpc
from lot_grpc.pb.lot.v1.memory_pb2 import Memory
from lot_grpc.server.guards import Guards
from tests.auth.issuer import signed, token
from tests.auth.keys import NOW, Clock, add_key, altered, change_key
from tests.auth.test_tokens import RULES, Keys
from tests.server.frames import Connection
from tests.server.service import Lot, serving
from tests.server.wire import failure_of, until

LIST = "/lot.v1.MemoryService/ListMemories"
Metadata = tuple[tuple[str, str | bytes], ...]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


@asynccontextmanager
async def protected(path: Path) -> AsyncIterator[Lot]:
    keys = KeyVerifier(path, Clock())
    authenticator = Authenticator(keys, TokenVerifier(RULES, Keys(), Clock()))
    async with serving(guards=Guards(authenticator=authenticator)) as lot:
        yield lot


def bearer(text: str) -> Metadata:
    return (("authorization", f"Bearer {text}"),)


async def listed(lot: Lot, metadata: Metadata | None) -> Any:
    request = pb.ListMemoriesRequest(namespace="team-a")
    return await rpc.MemoryServiceStub(lot.channel).ListMemories(request, metadata=metadata)


async def refused(lot: Lot, metadata: Metadata | None) -> tuple[str, str, str]:
    """Code, reason and text of a refusal."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await listed(lot, metadata)
    failed = failure_of(caught.value)
    return caught.value.code().name, failed.reason, caught.value.details() or ""


async def test_a_key_or_a_token_opens_and_nothing_else_does(path):
    text = add_key(path)
    async with protected(path) as lot:
        await listed(lot, bearer(text))
        await listed(lot, bearer(token(lot_namespaces=["team-*"])))
        code, reason, _ = await refused(lot, None)
        assert (code, reason) == ("UNAUTHENTICATED", "CREDENTIALS_REQUIRED")


async def test_every_failure_looks_the_same_to_the_caller_and_not_in_the_log(path):
    text = add_key(path)
    revoked, expired = add_key(path, name="old"), add_key(path, name="over")
    change_key(path, "old", revoke_time=NOW)
    change_key(path, "over", expire_time=NOW)
    wrong = altered(text)
    odd: dict[str, Metadata] = {
        "wrong": bearer(wrong["wrong secret"]),
        "unknown": bearer(wrong["unknown id"]),
        "short": bearer(wrong["truncated"]),
        "revoked": bearer(revoked),
        "expired": bearer(expired),
        "none": bearer("x"),
        "basic": (("authorization", "Basic YTpi"),),
        "empty": (("authorization", ""),),
        "twice": bearer(text) * 2,
        "token": bearer(token(aud="x")),
        "old token": bearer(token(exp=1)),
        "hollow": bearer(signed(b"[]", header={"kid": "k1"})),
        "long": bearer("a" * 6000),
    }
    async with protected(path) as lot:
        answers = {name: await refused(lot, metadata) for name, metadata in odd.items()}
        assert len(set(answers.values())) == 1, answers
        [(code, reason, message)] = set(answers.values())
        assert (code, reason) == ("UNAUTHENTICATED", "CREDENTIALS_INVALID")
        await until(lambda: len(lot.log) == len(odd))  # a status arrives before its line
        whys = [record["why"] for record in lot.log]
        assert "key" in whys[3]
        assert whys[3].endswith("is revoked")
        shown = json.dumps([dict(record) for record in lot.log], default=repr) + message
        for sent in (text, revoked, expired, *wrong.values()):
            if len(sent) > 20:
                assert sent.rpartition("_")[2] not in shown


async def test_credentials_are_looked_for_in_authorization_only(path):
    text = add_key(path)
    async with protected(path) as lot:
        for key in ("x-authorization", "x-api-key", "proxy-authorization", "cookie"):
            assert (await refused(lot, ((key, f"Bearer {text}"),)))[1] == "CREDENTIALS_REQUIRED"
        binary: Metadata = (("authorization-bin", f"Bearer {text}".encode()),)
        assert (await refused(lot, binary))[1] == "CREDENTIALS_REQUIRED"


@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe", b"Bearer \xff\xfe", b"Bearer \xc3\xa9", b"Bearer \0", b"\0", b"Bearer a\nb"],
)
async def test_metadata_that_is_no_text_is_refused_and_serving_goes_on(path, value):
    text = add_key(path)
    async with protected(path) as lot:
        with Connection(int(lot.address.rpartition(":")[2])) as out:
            await asyncio.to_thread(out.call, LIST.encode(), [(b"authorization", value)])
            await until(lambda: lot.log)
            await listed(lot, bearer(text))
            await until(lambda: len(lot.log) == 2)
        assert [one["reason"] for one in lot.log] == ["CREDENTIALS_INVALID", ""]


async def test_health_needs_no_credentials_and_reflection_and_unknown_calls_do(path):
    text = add_key(path)

    async with protected(path) as lot:
        health: Any = health_pb2_grpc.HealthStub(lot.channel)
        answer = await health.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(lot.channel)
        refused = reflection.ServerReflectionInfo()  # refused while it sent, it might not learn why
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await refused.read()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        call = reflection.ServerReflectionInfo(metadata=bearer(text))
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        assert (await call.read()).list_services_response.service
        call.cancel()
        unknown = lot.channel.unary_unary("/lot.v1.MemoryService/Unknown")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unknown(b"")
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unknown(b"", metadata=bearer(text))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_refused_call_is_refused_before_its_request_is_read(path):
    add_key(path)
    async with protected(path) as lot:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await lot.raw(LIST)(b"\xff no protobuf")
        assert failure_of(caught.value).reason == "CREDENTIALS_REQUIRED"


async def test_a_request_without_a_namespace_goes_to_the_own_one_of_the_key(path):
    text = add_key(path, namespaces=("team-a:*", "shared"), namespace="team-a:x")
    async with protected(path) as lot:
        memories = rpc.MemoryServiceStub(lot.channel)
        create = pb.CreateMemoryRequest(memory_id="m", memory=Memory(content="a note"))
        await memories.CreateMemory(create, metadata=bearer(text))
        get = pb.GetMemoryRequest(namespace="team-a:x", memory_id="m")
        assert await memories.GetMemory(get, metadata=bearer(text))


async def test_keys_change_while_calls_run_and_none_fails(path, monkeypatch):
    monkeypatch.setattr(files, "LOOK_SECONDS", 0.0)
    text = add_key(path)
    async with protected(path) as lot:
        ended = asyncio.Event()

        async def calling() -> int:
            count = 0
            while not ended.is_set():
                await listed(lot, bearer(text))
                count += 1
            return count

        calls = [asyncio.create_task(calling()) for _ in range(4)]
        for number in range(10):
            other = await asyncio.to_thread(add_key, path, name=f"n-{number}")
            await listed(lot, bearer(other))
            await asyncio.to_thread(change_key, path, f"n-{number}", revoke_time=NOW)
            assert (await refused(lot, bearer(other)))[1] == "CREDENTIALS_INVALID"
        ended.set()
        assert min(await asyncio.gather(*calls)) > 0
        assert {one["code"] for one in lot.log} == {"OK", "UNAUTHENTICATED"}


async def test_a_bug_in_a_check_refuses_the_call(path, monkeypatch):
    text = add_key(path)

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(KeyVerifier, "refresh", broken)
    async with protected(path) as lot:
        code, _, message = await refused(lot, bearer(text))
        assert code == "INTERNAL"
        assert "bug" not in message
