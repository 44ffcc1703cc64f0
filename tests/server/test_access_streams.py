"""Open streams, whose credentials may end before they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lot_grpc.domain.access import Grant, Role
from lot_grpc.domain.errors import CredentialsInvalidError
from lot_grpc.pb.lot.v1 import episode_service_pb2, transfer_pb2
from lot_grpc.server.guards import Guards
from lot_grpc.services.reindex.reindexer import Reindexer
from lot_grpc.services.transfer.exporter import Exporter
from tests.server.doubles import Episodes, batch
from tests.server.keys import Keys, metadata_of, principal
from tests.server.service import Lot, serving
from tests.server.wire import failure, until, wire

NS = "team-a"
HEADER = transfer_pb2.ExportHeader(format_version=1)
KEY = principal("k", f"admin {NS}", "admin *")


@pytest.fixture
def keys() -> Keys:
    return Keys(KEY, principal("other", f"admin {NS}", "admin *"))


@pytest.fixture
async def lot(keys: Keys) -> AsyncIterator[Lot]:
    guards = Guards(authenticator=keys, recheck_seconds=0.02)
    async with serving(guards=guards) as service:
        own = service.on(NS).by("k")
        await own.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
        await own.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
        yield own


async def _waiting(*_: Any, **__: Any) -> AsyncIterator[Any]:
    await asyncio.Event().wait()
    yield


async def opened(lot: Lot, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stream that would stay open."""
    match name:
        case "WatchChanges":
            call = lot.memories.WatchChanges(timeout=None)
        case "ReplayEpisode":
            call = lot.episodes.ReplayEpisode(episode_id="e", follow=True, timeout=None)
        case "Export":
            monkeypatch.setattr(Exporter, "rows", _waiting)
            call = lot.admin.Export(timeout=None)
        case "Reindex":
            monkeypatch.setattr(Reindexer, "run", _waiting)
            return lot.admin.Reindex(model="m", timeout=None)
        case "RecordEvents":
            call = lot.episodes.RecordEvents()
            await call.write(episode_service_pb2.RecordEventsRequest(namespace=NS, episode_id="e"))
        case "Import":
            call = lot.admin.Import()
            await call.write(transfer_pb2.ImportRequest(namespace=NS, header=HEADER))
    await call.read()
    return call


STREAMS = ["WatchChanges", "ReplayEpisode", "Export", "Reindex", "RecordEvents", "Import"]


async def outcome_of(call: Any) -> Any:
    async def drained() -> None:
        while await call.read() is not grpc.aio.EOF:
            pass

    async with asyncio.timeout(30):
        return await failure(drained())


@pytest.mark.parametrize("why", ["revoked", "expired"])
@pytest.mark.parametrize("name", STREAMS)
async def test_an_open_stream_ends_with_its_credentials(lot, keys, monkeypatch, name, why):
    call = await opened(lot, name, monkeypatch)
    assert lot.server is not None
    await until(lambda: lot.server.calls_in_flight == 1)
    before = keys.calls
    await until(lambda: keys.calls > before + 1)
    assert not call.done()  # it was checked, and goes on
    keys.refused["k"] = why
    ended = await outcome_of(call)
    assert (ended.code, ended.reason) == ("UNAUTHENTICATED", "CREDENTIALS_INVALID")
    assert ended.message == CredentialsInvalidError(why).message


@pytest.mark.parametrize(
    ("grants", "reason"),
    [
        ((Grant(Role.ADMIN, "team-b"),), "NAMESPACE_DENIED"),
        ((), "NAMESPACE_DENIED"),
        ((Grant(Role.READER, NS),), "ROLE_REQUIRED"),
    ],
)
async def test_an_open_stream_ends_when_its_principal_may_no_longer(
    lot, keys, monkeypatch, grants, reason
):
    call = await opened(lot, "RecordEvents", monkeypatch)
    keys.change(replace(KEY, grants=grants))
    assert (await outcome_of(call)).reason == reason


async def test_a_stream_of_another_principal_and_health_go_on(lot, keys, monkeypatch):
    stub: Any = health_pb2_grpc.HealthStub(lot.channel)
    health = stub.Watch(health_pb2.HealthCheckRequest())
    await health.read()
    other = await opened(lot.by("other"), "WatchChanges", monkeypatch)
    call = await opened(lot, "WatchChanges", monkeypatch)
    keys.refused["k"] = "revoked"
    await outcome_of(call)
    before = keys.calls
    await until(lambda: keys.calls > before + 1)
    await lot.by("other").memories.CreateMemory(memory={"content": "c"})
    assert (await other.read()).change_events
    assert not health.done()
    for one in (other, health):
        one.cancel()


async def test_a_stream_that_reads_nothing_ends_as_well(lot, keys, monkeypatch):
    """Its servicer is at work, and not at its next read."""
    call = await opened(lot, "RecordEvents", monkeypatch)
    assert lot.own_services is not None
    recorder = type(lot.own_services.episodes.recorder)
    entered = asyncio.Event()

    async def never(*_: Any) -> int:
        entered.set()
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(recorder, "append", never)
    request = episode_service_pb2.RecordEventsRequest()
    request.events.add(event_type="x", sequence=2)
    await call.write(request)
    await until(entered.is_set)
    keys.refused["k"] = "revoked"
    assert (await outcome_of(call)).reason == "CREDENTIALS_INVALID"


async def test_what_fails_in_an_unexpected_way_ends_the_stream(lot, keys, monkeypatch):
    call = await opened(lot, "WatchChanges", monkeypatch)

    async def broken(*_: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(keys, "authenticate", broken)
    ended = await outcome_of(call)
    assert ended.reason == "INTERNAL"
    assert "secret" not in ended.message


async def test_a_later_message_cannot_change_what_was_opened(lot, keys):
    """The namespace of the first message counts for all; another one is refused."""
    call = lot.episodes.RecordEvents()
    await call.write(episode_service_pb2.RecordEventsRequest(namespace=NS, episode_id="e"))
    await call.read()
    await call.write(episode_service_pb2.RecordEventsRequest(namespace="team-b"))
    assert (await outcome_of(call)).reason == "STREAM_NOT_OPENED"
    call = lot.admin.Import()
    await call.write(transfer_pb2.ImportRequest(namespace=NS, header=HEADER))
    await call.read()
    await call.write(transfer_pb2.ImportRequest(keep_namespaces=True))
    assert (await outcome_of(call)).reason == "STREAM_NOT_OPENED"


async def test_the_first_message_of_a_stream_without_a_namespace_goes_to_the_principals_own(lot):
    call = lot.channel.stream_stream(
        "/lot.v1.EpisodeService/RecordEvents",
        request_serializer=episode_service_pb2.RecordEventsRequest.SerializeToString,
        response_deserializer=episode_service_pb2.RecordEventsResponse.FromString,
    )(metadata=metadata_of("k"))
    await call.write(episode_service_pb2.RecordEventsRequest(episode_id="e"))
    assert (await call.read()).last_sequence == 1
    call.cancel()


async def test_a_write_whose_caller_has_gone_is_checked_without_asking_grpc(keys):
    """gRPC ends the process if it is asked about a call that is over."""
    servicer = Episodes()
    servicer.go.clear()
    guards = Guards(authenticator=keys, recheck_seconds=0.02)
    async with wire(None, servicer, guards=guards) as it:
        request = batch(1)
        request.namespace = NS
        call = it.episodes.RecordEvents(metadata=metadata_of("k"))
        await call.write(request)
        await until(lambda: servicer.begun == [1])
        call.cancel()
        await until(lambda: call.done())
        before = keys.calls
        await until(lambda: keys.calls > before + 5)
        assert it.server.calls_in_flight == 1
        servicer.go.set()
        await until(lambda: it.server.calls_in_flight == 0)
    assert servicer.stored == [1]
