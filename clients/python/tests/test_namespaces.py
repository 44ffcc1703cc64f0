"""Every RPC of every service writes into the client's namespace, by stub or by method."""

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from lot_client import AsyncLotClient, LotClient
from lot_client.pb.lot import v1

MODULES = [
    importlib.import_module(f"{v1.__name__}.{m.name}") for m in pkgutil.iter_modules(v1.__path__)
]
RPCS = [
    method
    for module in MODULES
    if hasattr(module, "DESCRIPTOR")
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
STUBS = {
    "PatternService": "patterns",
    "EpisodeService": "episodes",
    "MemoryService": "memories",
    "LearningService": "learning",
    "AdminService": "admin",
}


class Recorder(grpc.GenericRpcHandler):
    """Takes any call, keeps the bytes of its requests, and answers each with an empty message."""

    def __init__(self) -> None:
        self.requests: dict[str, list[bytes]] = defaultdict(list)

    def service(self, details: Any) -> grpc.RpcMethodHandler:
        def answer(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
            for request in requests:
                self.requests[details.method].append(request)
                yield b""

        return grpc.stream_stream_rpc_method_handler(answer)

    def namespaces(self, rpc: MethodDescriptor) -> list[str]:
        came = self.requests[f"/{rpc.containing_service.full_name}/{rpc.name}"]
        return [message_type(rpc).FromString(each).namespace for each in came]


def message_type(rpc: MethodDescriptor) -> Any:
    return GetMessageClass(rpc.input_type)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    server = grpc.server(ThreadPoolExecutor(4), handlers=[made])
    made.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield made
    server.stop(0).wait()


def stub_call(client: Any, rpc: MethodDescriptor) -> Any:
    return getattr(getattr(client, STUBS[rpc.containing_service.name]), rpc.name)


def requests_of(rpc: MethodDescriptor, **fields: Any) -> list[Any]:
    first, then = message_type(rpc)(**fields), message_type(rpc)()
    return [first, then] if rpc.client_streaming else [first]


def call_sync(client: LotClient, rpc: MethodDescriptor, **fields: Any) -> None:
    requests = requests_of(rpc, **fields)
    answer = stub_call(client, rpc)(iter(requests) if rpc.client_streaming else requests[0])
    if rpc.server_streaming:
        list(answer)
    assert requests == requests_of(rpc, **fields), "the caller's request was changed"


async def call_async(
    client: AsyncLotClient, rpc: MethodDescriptor, *, write: bool, **fields: Any
) -> None:
    async def each() -> AsyncIterator[Any]:
        for request in requests:
            yield request

    requests = requests_of(rpc, **fields)
    made = stub_call(client, rpc)
    if rpc.client_streaming and write:
        call = made()
        for request in requests:
            await call.write(request)
        await call.done_writing()
    else:
        call = made(each() if rpc.client_streaming else requests[0])
    if rpc.server_streaming:
        _ = [answer async for answer in call]
    else:
        await call
    assert requests == requests_of(rpc, **fields), "the caller's request was changed"


def test_every_service_has_a_stub_and_every_request_a_namespace():
    assert {rpc.containing_service.name for rpc in RPCS} == set(STUBS)
    assert len(RPCS) > 70
    assert [rpc.name for rpc in RPCS if "namespace" not in rpc.input_type.fields_by_name] == []


def test_no_namespace_within_a_request_is_the_callers_to_name():
    """Only stored things name theirs, which the server ignores, or an import keeps."""
    nested = {
        (message.name, field.name)
        for rpc in RPCS
        for message in reachable(rpc.input_type) - {rpc.input_type}
        for field in message.fields
        if field.name == "namespace"
    }
    stored = {"Decision", "Episode", "ErrorSolution", "ExportRecord", "LearningEvent", "Memory"}
    stored |= {"NamespacePolicy", "Pattern", "Preference", "Retrieval", "Session"}

    assert {message for message, _ in nested} <= stored


def reachable(message: Descriptor) -> set[Descriptor]:
    found, todo = set(), [message]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += [field.message_type for field in each.fields if field.message_type]
    return found


def expected(rpc: MethodDescriptor, namespace: str) -> list[str]:
    return [namespace, ""] if rpc.client_streaming else [namespace]


@pytest.mark.parametrize("own_channel", [False, True])
def test_stubs_of_threads_fill_the_namespace_in(recorder: Recorder, own_channel: bool):
    channel = grpc.insecure_channel(recorder.address) if own_channel else None
    with LotClient(recorder.address, namespace="team-a", channel=channel) as client:
        for rpc in RPCS:
            call_sync(client, rpc)

    assert {r.name: recorder.namespaces(r) for r in RPCS} == {
        r.name: expected(r, "team-a") for r in RPCS
    }


@pytest.mark.parametrize("write", [False, True])
async def test_stubs_of_tasks_fill_the_namespace_in(recorder: Recorder, write: bool):
    channel = grpc.aio.insecure_channel(recorder.address) if write else None
    async with AsyncLotClient(recorder.address, namespace="team-a", channel=channel) as client:
        for rpc in RPCS:
            await call_async(client, rpc, write=write)

    assert {r.name: recorder.namespaces(r) for r in RPCS} == {
        r.name: expected(r, "team-a") for r in RPCS
    }


async def test_a_namespace_in_the_request_wins(recorder: Recorder):
    with LotClient(recorder.address, namespace="team-a") as client:
        for rpc in RPCS:
            call_sync(client, rpc, namespace="team-b")
    async with AsyncLotClient(recorder.address, namespace="team-a") as tasks:
        for rpc in RPCS:
            await call_async(tasks, rpc, write=False, namespace="team-b")

    assert {r.name: recorder.namespaces(r) for r in RPCS} == {
        r.name: expected(r, "team-b") * 2 for r in RPCS
    }


def test_a_client_without_a_namespace_and_one_that_uses_another(recorder: Recorder):
    get = next(rpc for rpc in RPCS if rpc.name == "GetMemory")
    with LotClient(recorder.address) as client:
        call_sync(client, get)
        call_sync(client.using(namespace="team-c"), get)
        call_sync(client.using(namespace="team-c").using(deadline=5.0), get)
        call_sync(client.using(namespace="team-c").using(namespace=""), get)

    assert recorder.namespaces(get) == ["", "team-c", "team-c", ""]
