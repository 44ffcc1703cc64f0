"""Every RPC is carried out and has its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.examples import EXAMPLES
from tests.server.service import SERVICES

RPCS = sorted(
    f"{service.name}.{method.name}" for service in SERVICES.values() for method in service.methods
)


async def test_every_rpc_of_the_contract_is_carried_out(lot):
    assert sorted(EXAMPLES) == RPCS
    assert list((await lot.admin.GetServerInfo()).capabilities) == RPCS


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
                if "not implemented yet" in " ".join(" ".join(comment).split()).lower():
                    told.add(f"{service}.{found[1]}")
                comment = []
            else:
                comment = []
    assert told == set(RPCS) - set(EXAMPLES)


@pytest.mark.parametrize("rpc", sorted(EXAMPLES))
def test_each_rpc_that_is_carried_out_has_tests_of_its_own(rpc):
    service, _, name = rpc.partition(".")
    resource_kind = {"AdminService": "admin", "MemoryService": "memories"}.get(
        service, f"{service.removesuffix('Service').lower()}s"
    )
    texts = [file.read_text() for file in Path(__file__).parent.glob(f"test_{resource_kind}*.py")]
    calls = sum(text.count(f".{name}(") + text.count(f'"{name}"') for text in texts)
    assert calls >= (1 if name == "RecordEvents" else 2), f"no test calls {rpc}"
