"""Reindex on the wire: its messages, and what the server says of its model afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from lot_grpc.domain.errors import ModelSwitchedError
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers.admin import AdminServicer
from lot_grpc.server.servicers.base import ServerDescription
from tests.server.service import serving
from tests.server.wire import failure, failure_of

OTHER = "test-double/hashing-48"


async def steps_of(lot, **fields):
    stub = pb_grpc.AdminServiceStub(lot.channel)
    request = pb.ReindexRequest(namespace=lot.namespace, **fields)
    return [step async for step in stub.Reindex(request, timeout=60)]


async def test_a_reindex_tells_how_far_it_is_and_the_other_model_serves():
    async with serving() as lot:
        items = [{"pattern": {"task": f"Task number {n}"}, "pattern_id": f"p{n}"} for n in range(9)]
        await lot.patterns.BatchSavePatterns(items=items)
        steps = await steps_of(lot, model=OTHER)
        assert steps[0].phase == pb.REINDEX_PHASE_PREPARING
        last = steps[-1]
        assert (last.phase, last.done_count, last.total_count) == (pb.REINDEX_PHASE_DONE, 9, 9)
        assert last.elapsed.ToNanoseconds() > 0
        assert not last.HasField("remaining")
        info = await lot.admin.GetServerInfo()
        # The double keeps its name; what it makes is told by its dimensions.
        assert info.dimensions == 48
        found = await lot.patterns.RecallPatterns(query="Task number 4", limit=1)
        assert found.hits[0].pattern.pattern_id == "p4"
        assert (await lot.admin.CheckReady()).ready


async def test_calls_go_on_while_it_runs():
    async with serving() as lot:
        items = [{"pattern": {"task": f"Task number {n}"}} for n in range(300)]
        await lot.patterns.BatchSavePatterns(items=items)
        running = asyncio.create_task(steps_of(lot, model=OTHER))
        requested = 0
        while not running.done():
            found = await lot.patterns.RecallPatterns(query=f"Task number {requested}", limit=1)
            assert found.hits[0].pattern.task == f"Task number {requested}"
            await lot.patterns.SavePattern(pattern={"task": f"Written meanwhile {requested}"})
            requested += 1
        assert (await running)[-1].phase == pb.REINDEX_PHASE_DONE
        for number in range(requested):
            found = await lot.patterns.RecallPatterns(query=f"Written meanwhile {number}", limit=1)
            assert found.hits[0].pattern.task == f"Written meanwhile {number}"


async def test_to_the_model_that_serves_nothing_is_done(lot):
    model = (await lot.admin.GetServerInfo()).model
    [*_, last] = await steps_of(lot, model=model)
    assert last.phase == pb.REINDEX_PHASE_DONE
    assert "is already in use" in last.detail


async def test_a_dry_run_counts(lot):
    await lot.patterns.SavePattern(pattern={"task": "t"})
    model = (await lot.admin.GetServerInfo()).model
    [*_, last] = await steps_of(lot, model=model, dry_run=True)
    assert last.phase == pb.REINDEX_PHASE_DONE
    assert last.total_count >= 1
    assert "nothing was changed" in last.detail


async def test_a_model_that_nobody_knows_is_refused_and_named(lot):
    failed = await failure(steps_of(lot, model="nobody/knows-it"))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EMBEDDING_MODEL_UNAVAILABLE")
    assert failed.metadata == {"model": "nobody/knows-it"}
    assert "is not known" in failed.message


async def test_a_second_one_is_refused_while_one_runs():
    async with serving() as lot:
        stub = pb_grpc.AdminServiceStub(lot.channel)
        items = [{"pattern": {"task": f"Task number {n}"}} for n in range(400)]
        await lot.patterns.BatchSavePatterns(items=items)
        first = stub.Reindex(pb.ReindexRequest(model=OTHER), timeout=60)
        assert (await first.read()).phase == pb.REINDEX_PHASE_PREPARING
        failed = await failure(steps_of(lot, model=OTHER))
        assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "REINDEX_RUNNING")
        first.cancel()


async def test_hung_up_the_former_model_serves_and_the_next_call_ends_it():
    async with serving() as lot:
        stub = pb_grpc.AdminServiceStub(lot.channel)
        items = [{"pattern": {"task": f"Task number {n}"}} for n in range(400)]
        await lot.patterns.BatchSavePatterns(items=items)
        call = stub.Reindex(pb.ReindexRequest(model=OTHER), timeout=60)
        await call.read()
        call.cancel()
        # The first one ends at its next answer; until then another one is refused.
        while (await reason_of(steps_of(lot, model=OTHER, dry_run=True))) == "REINDEX_RUNNING":
            await asyncio.sleep(0.05)
        [*_, last] = await steps_of(lot, model=OTHER)
        assert last.phase == pb.REINDEX_PHASE_DONE
        found = await lot.patterns.RecallPatterns(query="Task number 4", limit=1)
        assert found.hits[0].pattern.task == "Task number 4"


async def reason_of(call) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return failure_of(error).reason
    return ""


async def test_an_import_is_ended_at_the_switch_and_goes_on_when_opened_again():
    async with serving() as lot:
        stub = pb_grpc.AdminServiceStub(lot.channel)
        for number in range(3):
            await lot.patterns.SavePattern(pattern={"task": f"Task number {number}"})
        [header, first, *_] = [
            one async for one in stub.Export(transfer_pb2.ExportRequest(namespace=lot.namespace))
        ]
        opening = transfer_pb2.ImportRequest(namespace="moved", header=header.header)
        records = transfer_pb2.ImportRequest(records=first.records, cursor=first.cursor)
        call = stub.Import(timeout=60)
        await call.write(opening)
        await call.read()
        await steps_of(lot, model=OTHER)
        await call.write(records)
        failed = await failure(_read(call))
        assert (failed.code, failed.reason) == ("ABORTED", "MODEL_SWITCHED")

        again = stub.Import(timeout=60)
        for message in (opening, records):
            await again.write(message)
            answer = await again.read()
        assert answer.imported_counts == {"PATTERN": 3}
        found = await lot.on("moved").patterns.RecallPatterns(query="Task number 2", limit=1)
        assert found.hits[0].pattern.task == "Task number 2"


async def test_an_export_with_vectors_is_ended_at_the_switch():
    async with serving() as lot:
        for number in range(3):
            await lot.patterns.SavePattern(pattern={"task": f"Task number {number}"})
        services = lot.own_services
        assert services is not None
        facts = ServerDescription(
            "0", (), Limits(), max_batch_items=1, min_free_bytes=0, start_time=0
        )
        servicer: Any = AdminServicer(services, lot.clock, facts)
        request = transfer_pb2.ExportRequest(namespace=lot.namespace, include_vectors=True)
        messages = servicer.Export(request, None)
        assert (await anext(messages)).header.dimensions == 64
        await steps_of(lot, model=OTHER)
        with pytest.raises(ModelSwitchedError):
            await anext(messages)


async def _read(call):
    answer = await call.read()
    return answer if answer is not grpc.aio.EOF else await call
