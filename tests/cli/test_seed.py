from __future__ import annotations

import asyncio
import json
from typing import Any

from typer.testing import CliRunner

from lot_grpc.cli.app import app as command_line
from lot_grpc.knowledge import built_in_packs
from tests.server.service import Lot, serving

EVERYTHING = sum(pack.size for pack in built_in_packs())


async def seed(lot: Lot, *arguments: str) -> Any:
    """``lot-grpc seed`` against a server of this process."""
    assert lot.address
    given = ["seed", "--address", lot.address, "--namespace", lot.namespace, *arguments]
    return await asyncio.to_thread(CliRunner().invoke, command_line, given)


async def test_it_prints_a_line_a_pack_and_the_sum():
    async with serving() as lot:
        dry = await seed(lot, "--dry-run")
        assert dry.exit_code == 0
        assert "would be stored" in dry.stdout
        assert (await lot.patterns.ListPatterns()).patterns == []
        first = await seed(lot)
        rows = {line.split()[0]: line.split()[1:] for line in first.stdout.splitlines()[1:]}
        assert rows["all"] == [str(EVERYTHING), "0", "0"]
        assert set(rows) == {"all", *(pack.name for pack in built_in_packs())}
        again = await seed(lot)
        assert again.stdout.splitlines()[-1].split() == ["all", "0", str(EVERYTHING), "0"]


async def test_what_was_deleted_is_told_and_comes_back_when_asked():
    async with serving() as lot:
        await seed(lot, "--pack", "common_errors")
        await lot.memories.DeleteErrorSolution(
            error_solution_id="seed:common_errors:nil_pointer.go"
        )
        assert "--restore-deleted" in (await seed(lot)).stdout
        back = json.loads((await seed(lot, "--restore-deleted", "--json")).stdout)
        assert (back["created_count"], back["skipped_deleted_count"]) == (1, 0)
        assert back["created_counts"] == {"ERROR_SOLUTION": 1, "MEMORY": 0, "PATTERN": 0}
        assert back["namespace"] == lot.namespace
        assert {group["name"] for group in back["packs"]} == {
            pack.name for pack in built_in_packs()
        }


async def test_a_refusal_is_a_sentence_and_exits_1():
    async with serving() as lot:
        refused = await seed(lot, "-p", "recipes")
        assert refused.exit_code == 1
        assert "no knowledge pack 'recipes'" in refused.stderr
        assert "Traceback" not in refused.stderr
        as_json = await seed(lot, "-p", "recipes", "--json")
        assert (as_json.stdout, as_json.stderr) == ("", refused.stderr)


def test_a_server_that_is_not_there_exits_1(runner):
    result = runner.invoke(command_line, ["seed", "-a", "127.0.0.1:1", "--timeout", "5"])
    assert result.exit_code == 1
    assert "UNAVAILABLE" in result.stderr
