"""`lot-grpc embed` against a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from lot_grpc.cli.app import app as command_line
from tests.cli.patterns import table_of
from tests.cli.scripted import NASTY
from tests.cli.test_episodes import steering
from tests.server.service import serving

Run = Callable[..., Awaitable[Result]]


@pytest.fixture
async def embed() -> AsyncIterator[Run]:
    async with serving() as lot:

        async def run(*arguments: str, **environment: str) -> Result:
            given = ["embed", *arguments, "-a", lot.address]
            return await asyncio.to_thread(CliRunner(env=environment).invoke, command_line, given)

        yield run


async def test_a_row_for_each_text_and_the_model(embed: Run):
    done = await embed("log in", "log in", "water the plants", "word " * 5_000)
    assert (done.exit_code, done.stderr) == (0, "")
    head, first, second, third, *rest = table_of(done.stdout)
    assert head.split() == ["similarity", "read", "tokens", "text"]
    assert first.split() == ["1.000", "whole", "2", "log", "in"]
    assert float(second.split()[0]) < 1
    assert third.split()[1:4] == ["in", "part", "5,000"]
    assert "test-double/hashing, 64 dimensions" in " ".join(rest)


async def test_a_query_alone_shows_the_model(embed: Run):
    done = await embed("log in")
    assert (done.exit_code, done.stdout.split()[0]) == (0, "model")


async def test_code_is_read_as_code(embed: Run):
    code = "retryFailedRequest()"
    plain, coded = [
        json.loads((await embed("retry failed request", code, "--json", *option)).stdout)
        for option in ((), ("--code",))
    ]
    for answer in (plain, coded):
        assert [len(one["vector"]) for one in answer["embeddings"]] == [64, 64]
    assert coded["embeddings"][0]["similarities"][1] > plain["embeddings"][0]["similarities"][1]


async def test_a_refusal_of_the_server_is_shown(embed: Run):
    done = await embed("log in", "")
    assert done.exit_code == 1
    assert "items[1].text" in done.stderr


@pytest.mark.parametrize("columns", ["20", "200"])
async def test_texts_cannot_steer_the_terminal_nor_widen_the_table(embed: Run, columns: str):
    done = await embed("log in", NASTY, "漢字 " * 200, COLUMNS=columns)
    assert not steering(done.stdout)
    assert max(map(cell_len, done.stdout.splitlines())) <= int(columns)
