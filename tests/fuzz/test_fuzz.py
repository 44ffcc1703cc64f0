"""A few calls of every RPC and a few connections that hurt, against a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from lot_grpc.pb.lot.v1 import memory_service_pb2
from tests.e2e.conftest import PACK
from tests.e2e.process import Served, serve
from tests.fuzz.calls import RPCS, attempt
from tests.fuzz.making import Maker
from tests.fuzz.run import OFFLINE, Fuzz

CALLS = 3 * len(RPCS)


@pytest.mark.model
@pytest.mark.skipif(PACK is None, reason="needs the model pack: extra `offline`")
async def test_it_stays_up_whatever_it_is_sent(tmp_path):
    served = serve(tmp_path / "data", tmp_path / "server.log", OFFLINE)
    try:
        fuzz = Fuzz(served, 20, print)
        await fuzz.run(CALLS, 240, transport_cases=10, half_sent=20)
        fuzz.finish()
    finally:
        if served.process.poll() is None:
            served.kill()
    print("\n".join(fuzz.table()))
    assert fuzz.wrong == {}
    codes = {rpc: row.codes for rpc, row in fuzz.rows.items()}
    assert codes.keys() == RPCS.keys()
    accepted = sum(found["OK"] + found["CUT"] for found in codes.values())
    assert accepted > CALLS / 5, "most of it was refused at the door"


def test_a_call_is_the_same_for_the_same_seed():
    for rpc in RPCS:
        one, other = (attempt(Maker(), 1, rpc, number) for number in (5, 5))
        assert one == other
    assert attempt(Maker(), 2, "MemoryService.CreateMemory", 5) != attempt(
        Maker(), 1, "MemoryService.CreateMemory", 5
    )


def test_ids_that_a_server_gave_are_named_again():
    maker = Maker()
    answer = memory_service_pb2.CreateMemoryResponse()
    answer.memory.memory_id = "given"
    maker.learn(answer)
    rpc = "MemoryService.GetMemory"
    sent = [attempt(maker, 1, rpc, number).messages[0] for number in range(60)]
    assert any(b"given" in message for message in sent)


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ('{"level": "error", "method": "X", "message": "call"}\n', "log X call"),
        ('{"level": "warning", "exception": "Traceback …\\nE: no"}\n', "traceback E"),
        ('{"level": "warning", "message": "' + "x" * 1200 + '"}\n', "log size"),
    ],
)
def test_a_log_that_is_wrong_is_noted(tmp_path: Path, log: str, kind: str):
    path = tmp_path / "log"
    path.write_text(log)
    fuzz = Fuzz(Served(None, path, tmp_path), 1, print)  # type: ignore[arg-type]
    fuzz._read_log(calls=1)
    assert kind in fuzz.wrong
