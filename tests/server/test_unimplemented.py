"""What is not carried out says so, and each RPC that is carried out has its tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_service_pb2
from tests.server.examples import EXAMPLES, prepare
from tests.server.service import SERVICES, Lot
from tests.server.wire import failure

RPCS = sorted(
    f"{service.name}.{method.name}" for service in SERVICES.values() for method in service.methods
)


async def ask(lot: Lot, rpc: str, raw: bytes) -> Any:
    """Call any RPC with bytes, by its own shape."""
    service, _, name = rpc.partition(".")
    method = SERVICES[service].methods_by_name[name]
    path = f"/{method.containing_service.full_name}/{name}"
    if method.client_streaming and method.server_streaming:
        return await _first(lot.channel.stream_stream(path)(iter([raw]), timeout=30))
    if method.server_streaming:
        return await _first(lot.channel.unary_stream(path)(raw, timeout=30))
    if method.client_streaming:
        return await lot.channel.stream_unary(path)(iter([raw]), timeout=30)
    return await lot.raw(path)(raw, timeout=30)


async def _first(call: Any) -> Any:
    answer = await call.read()
    return answer if answer is not grpc.aio.EOF else await call


@pytest.mark.parametrize("rpc", sorted(set(RPCS) - set(EXAMPLES)))
async def test_an_rpc_that_is_not_carried_out_says_so(lot, rpc):
    for raw in (b"", b"\x0a\x05abc"):  # good or not: nothing may look as if it had been tried
        failed = await failure(ask(lot, rpc, raw))
        assert (failed.code, failed.reason) == ("UNIMPLEMENTED", "NOT_IMPLEMENTED")
        assert failed.metadata == {"what": rpc}
        assert rpc in failed.message
    assert rpc not in (await lot.admin.GetServerInfo()).capabilities


async def _option(lot: Lot, call: Any, what: str) -> None:
    failed = await failure(call)
    assert (failed.code, failed.reason) == ("UNIMPLEMENTED", "NOT_IMPLEMENTED")
    assert what in failed.metadata["what"]
    assert "not carried out" in failed.message


async def test_options_that_are_not_carried_out_say_so(lot):
    await prepare(lot)
    semantic = pattern_service_pb2.DEDUPE_SEMANTIC
    await _option(lot, lot.patterns.SavePattern(pattern={"task": "u"}, dedupe=semantic), "SEMANTIC")
    extract = {"auto_extract_patterns": True}
    end = lot.episodes.EndEpisode(episode_id="e", status=2, **extract)
    await _option(lot, end, "auto_extract_patterns")
    whole = lot.episodes.RecordEpisode(episode={"task": "u", "status": 2}, **extract)
    await _option(lot, whole, "auto_extract_patterns")
    assert len((await lot.patterns.ListPatterns()).patterns) == 1
    [episode] = (await lot.episodes.ListEpisodes()).episodes
    assert episode.status == 1


async def test_rankings_that_memories_do_not_have_are_refused(lot):
    for ranking in (outcome_pb2.RANKING_RELIABLE, outcome_pb2.RANKING_EXPLORE):
        failed = await failure(lot.memories.SearchMemories(query="t", ranking=ranking))
        assert failed.fields == {"ranking": "enum.in"}


# --- architecture -----------------------------------------------------------------------------


def test_an_rpc_says_in_the_contract_that_it_is_not_carried_out_just_when_it_is_not():
    proto = Path(__file__).parents[2] / "proto" / "lot" / "v1"
    told = set()
    for file in proto.glob("*_service.proto"):
        service = ""
        comment: list[str] = []
        for line in file.read_text().splitlines():
            if found := re.match(r"service (\w+)", line):
                service = found[1]
            if found := re.match(r"\s*//(.*)", line):
                comment.append(found[1])
            elif found := re.match(r"\s*rpc (\w+)", line):
                if "not yet carried out" in " ".join(" ".join(comment).split()).lower():
                    told.add(f"{service}.{found[1]}")
                comment = []
            else:
                comment = []
    assert told == set(RPCS) - set(EXAMPLES)


@pytest.mark.parametrize("rpc", sorted(EXAMPLES))
def test_each_rpc_that_is_carried_out_has_tests_of_its_own(rpc):
    service, _, name = rpc.partition(".")
    noun = {"AdminService": "admin", "MemoryService": "memories"}.get(
        service, f"{service.removesuffix('Service').lower()}s"
    )
    texts = [file.read_text() for file in Path(__file__).parent.glob(f"test_{noun}*.py")]
    calls = sum(text.count(f".{name}(") + text.count(f'"{name}"') for text in texts)
    assert calls >= (1 if name == "RecordEvents" else 2), f"no test calls {rpc}"
