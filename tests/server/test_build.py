"""Starting: health, reflection's neighbours, ports; and what the options do."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from lot_grpc.domain.errors import StartupError
from lot_grpc.server.build import build_server
from lot_grpc.server.call import Method
from tests.server.wire import EPISODES, PATTERNS, wire

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_started_server_is_healthy_as_a_whole_and_by_service():
    async with wire() as it:
        for name in ("", "lot.v1.PatternService", "lot.v1.EpisodeService"):
            answer = await it.health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await it.health.Check(health_pb2.HealthCheckRequest(service="lot.v1.Nothing"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_health_watchers_see_the_drain_and_do_not_hold_it_up():
    async with wire() as it:
        watch = it.health.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        await it.server.stop(grace_seconds=3600)
        assert (await watch.read()).status == NOT_SERVING


async def test_a_port_in_use_is_said_to_be_so():
    async with wire() as it:
        second = build_server({})
        with pytest.raises(StartupError, match=f"another process uses port {it.port}.*or choose"):
            await second.start(f"127.0.0.1:{it.port}")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("no.such.host.invalid:0", "cannot resolve host"),
        ("192.0.2.1:0", "not an address of this machine"),
        ("nonsense", "form host:port"),
    ],
)
async def test_an_address_that_cannot_be_had_is_explained(address, says):
    with pytest.raises(StartupError, match=says):
        await build_server({}).start(address)


def test_what_is_not_marked_as_reading_writes():
    writes = {m.name for m in PATTERNS.methods if Method.of(m).writes}
    assert "SavePattern" in writes
    assert {"GetPattern", "ListPatterns", "RecallPatterns"}.isdisjoint(writes)
    record = Method.of(EPISODES.methods_by_name["RecordEvents"])
    assert (record.client_streaming, record.server_streaming, record.writes) == (True, True, True)
    replay = Method.of(EPISODES.methods_by_name["ReplayEpisode"])
    assert (replay.client_streaming, replay.server_streaming, replay.writes) == (False, True, False)


async def test_a_server_that_could_not_start_can_be_stopped():
    async with wire() as it:
        second = build_server({})
        with pytest.raises(StartupError):
            await second.start(f"127.0.0.1:{it.port}")
        await second.stop(grace_seconds=60)
