"""`lot-grpc scan` against a server in this process."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lot_grpc.cli.app import app as command_line
from tests.secrets import keys
from tests.server.service import Lot, serving

KEY = keys.FIT["github_token"](random.Random(1))
JWT = keys.FIT["jwt"](random.Random(1))


async def scan(lot: Lot, *arguments: str) -> Any:
    command = ["scan", "--address", lot.address, *arguments]
    ran = await asyncio.to_thread(CliRunner().invoke, command_line, command)
    assert KEY not in ran.output
    assert JWT not in ran.output
    return ran


async def fill(lot: Lot) -> None:
    await lot.memories.CreateMemory(
        memory={"content": f"{KEY} and {KEY}, also {JWT}", "metadata": {"x": {"y": KEY}}},
        memory_id="m",
    )
    saved = await lot.patterns.SavePattern(pattern={"task": "the token is required"})
    await lot.patterns.RecordPatternFeedback(
        pattern_id=saved.pattern.pattern_id, helpful=True, text=f"worked with {KEY}"
    )
    await lot.memories.PutPreference(key=KEY, value={"string_value": "v"})
    started = await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    await lot.episodes.RecordEvent(
        episode_id=started.episode.episode_id,
        event={"event_type": "tool", "data": {"env": {"password": "hunter22"}}},
    )


async def test_it_says_where_secrets_are_and_never_what_they_are() -> None:
    async with serving() as lot:
        await fill(lot)
        ran = await scan(lot, "-n", lot.namespace, "--json")
        assert ran.exit_code == 1
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert {one["namespace"] for one in found} == {lot.namespace}
        told = {
            (one["resource_kind"], one["id"], one["field"], one["rule"]): one["count"]
            for one in found
        }
        mark = "[REDACTED:github_token]"
        assert told.pop(("memory", "m", "memory.content", "github_token")) == 2
        assert told.pop(("memory", "m", "memory.content", "jwt")) == 1
        assert told.pop(("memory", "m", "memory.metadata.x.y", "github_token")) == 1
        assert told.pop(("preference", mark, "preference.preference.key", "github_token")) == 1
        event = "episode_event.event.data.env.password"
        assert [key for key in told if key[2:] == (event, "password")]
        assert [key for key in told if key[0] == "pattern" and key[2] == "stored_form.row.text"]
        assert len(told) == 2


async def test_the_table_ends_with_a_sum() -> None:
    async with serving() as lot:
        await fill(lot)
        ran = await scan(lot, "--all-namespaces", "--kind", "memory")
        assert ran.exit_code == 1
        assert ran.stdout.splitlines()[-1] == "4 secrets in 1 record; 1 record scanned"
        assert "memory.metadata.x.y" in ran.stdout


async def test_nothing_found_is_exit_code_0() -> None:
    async with serving() as lot:
        await lot.memories.CreateMemory(memory={"content": "the token is required"})
        ran = await scan(lot, "-n", lot.namespace)
        assert (ran.exit_code, ran.stdout) == (0, "0 secrets; 1 record scanned\n")


async def test_rules_of_the_settings_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "acme.toml"
    rules.write_text("[[rules]]\nname = 'acme'\npattern = 'acme-[0-9]+'\n")
    monkeypatch.setenv("LOT_REDACT_RULES", str(rules))
    monkeypatch.setenv("LOT_REDACT_RULES_OFF", "github_token,jwt")
    async with serving() as lot:
        await lot.memories.CreateMemory(memory={"content": f"acme-17 {KEY} {JWT}"})
        ran = await scan(lot, "-n", lot.namespace, "--json")
        assert [json.loads(line)["rule"] for line in ran.stdout.splitlines()] == ["acme"]
        rules.write_text("[[rules]]\nname = 'acme'\npattern = '('\n")
        ran = await scan(lot, "-n", lot.namespace)
        assert ran.exit_code == 1
        assert "rule acme: pattern: RE2 rejects it" in ran.stderr


async def test_namespace_and_all_namespaces_exclude_each_other() -> None:
    async with serving() as lot:
        assert (await scan(lot, "-n", "a", "--all-namespaces")).exit_code == 2
