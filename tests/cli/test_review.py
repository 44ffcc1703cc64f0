from __future__ import annotations

import asyncio
import json
from typing import Any

from typer.testing import CliRunner

from lot_grpc.cli.app import app as command_line
from lot_grpc.cli.origin_texts import review_text
from lot_grpc.pb.lot.v1 import origin_pb2
from tests.server.service import Lot, serving

MODEL = {"kind": "ORIGIN_KIND_MODEL", "name": "m1"}


async def run(lot: Lot, *arguments: str) -> Any:
    """A command against a server of this process."""
    assert lot.address
    command, *rest = arguments
    given = [command, "--address", lot.address, "--namespace", lot.namespace, *rest]
    return await asyncio.to_thread(CliRunner().invoke, command_line, given)


async def held_back(lot: Lot) -> None:
    await lot.admin.UpdateNamespacePolicy(policy={"review_origins": ["ORIGIN_KIND_MODEL"]})
    memory = {"content": "the port is 8080", "origin": MODEL}
    await lot.memories.CreateMemory(memory=memory, memory_id="m")
    pattern = {"task": "deploy the shop", "origin": MODEL}
    await lot.patterns.SavePattern(pattern=pattern, pattern_id="p")


async def test_it_lists_what_is_pending_and_reviews_it():
    async with serving() as lot:
        assert "Nothing is pending." in (await run(lot, "review")).stdout
        await held_back(lot)
        pending = await run(lot, "review")
        assert pending.exit_code == 0
        rows = [line.split() for line in pending.stdout.splitlines()]
        [memory] = [row for row in rows if row[:2] == ["memory", "m"]]
        assert memory[3:] == ["model", "m1", "the", "port", "is", "8080"]
        assert [row[1] for row in rows if row[:1] == ["pattern"]] == ["p"]
        only = await run(lot, "review", "--kind", "pattern", "--json")
        assert [json.loads(line)["pattern_id"] for line in only.stdout.splitlines()] == ["p"]
        stale = await run(lot, "review", "--kind", "memory", "--approve", "m=old", "nobody")
        assert stale.exit_code == 1
        assert "was edited in the meantime" in stale.stdout
        assert "no memory 'nobody'" in stale.stdout
        done = await run(
            lot, "review", "--kind", "memory", "--approve", f"m={memory[2]}", "--note", "ok"
        )
        assert (done.exit_code, done.stdout) == (0, "m: approved\n")
        again = await run(lot, "review", "--kind", "memory", "--approve", "m", "--note", "ok")
        assert again.stdout == "m: approved already\n"
        rejected = await run(lot, "review", "--kind", "pattern", "--reject", "p", "--json")
        assert json.loads(rejected.stdout)["review"]["state"] == "REVIEW_STATE_REJECTED"


async def test_patterns_are_shown_with_origin_and_review_and_filtered_by_both():
    async with serving() as lot:
        await held_back(lot)
        await lot.patterns.SavePattern(pattern={"task": "deploy the site"}, pattern_id="q")
        listed = (await run(lot, "patterns")).stdout
        assert "pending: deploy the shop" in listed
        assert "deploy the site" in listed
        assert "deploy the shop" not in (await run(lot, "patterns", "--origin", "agent")).stdout
        shown = (await run(lot, "patterns", "p")).stdout
        assert "model m1" in shown
        assert "pending" in shown
        assert "deploy the shop" not in (await run(lot, "recall", "deploy the shop")).stdout
        found = await run(lot, "recall", "deploy the shop", "--review", "pending")
        assert "pending: deploy the shop" in found.stdout


async def test_wrong_usage_says_what_is_missing():
    async with serving() as lot:
        for given, sentence in (
            (["--approve"], "give the IDs of the records"),
            (["m", "--approve"], "IDs need --kind and one of"),
            (["m", "--kind", "memory"], "IDs need --kind and one of"),
            (["m", "--kind", "memory", "--approve", "--reject"], "IDs need --kind and one of"),
            (["m", "--kind", "episode", "--approve"], "--kind is memory, pattern"),
        ):
            refused = await run(lot, "review", *given)
            assert refused.exit_code == 2
            assert sentence in " ".join(refused.stderr.replace("│", " ").split())


def test_a_review_is_shown_with_who_set_it():
    review = origin_pb2.Review(
        state=origin_pb2.REVIEW_STATE_APPROVED, note="checked", principal="ann\x1b"
    )
    shown = review_text(review)
    assert shown.startswith("approved by ann")
    assert shown.endswith(": checked")
    review.ClearField("principal")
    assert review_text(review) == "approved: checked"
