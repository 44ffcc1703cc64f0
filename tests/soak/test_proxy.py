"""The proxy carries everything, cuts in the middle, and lets go on what it held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.soak.proxy import Cut, Proxy

MESSAGE = bytes(range(256)) * 40


@asynccontextmanager
async def echoing() -> AsyncIterator[Proxy]:
    """A proxy before a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1], seed=1)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
        server.close()


async def _connected(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    return reader, writer


async def test_everything_passes():
    async with echoing() as proxy:
        reader, writer = await _connected(proxy)
        writer.write(MESSAGE)
        assert await reader.readexactly(len(MESSAGE)) == MESSAGE
        writer.close()


@pytest.mark.parametrize("how", ["RST", "FIN"])
async def test_a_cut_falls_into_the_middle_of_a_message(how: Cut):
    async with echoing() as proxy:
        reader, writer = await _connected(proxy)
        assert proxy.cut_one(how)
        writer.write(MESSAGE)
        came = b""
        with suppress(ConnectionResetError):  # tests below tell which cut does that
            came = await asyncio.wait_for(reader.read(-1), 10)
        assert MESSAGE.startswith(came)
        assert len(came) < len(MESSAGE)
        assert proxy.cuts == 1
        writer.close()


async def test_rst_is_told_as_a_reset():
    async with echoing() as proxy:
        reader, writer = await _connected(proxy)
        proxy.cut_one("RST")
        writer.write(MESSAGE)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(-1), 10)
        writer.close()


async def test_fin_is_told_as_an_end():
    async with echoing() as proxy:
        reader, writer = await _connected(proxy)
        proxy.cut_one("FIN")
        writer.write(b"short")
        assert len(await asyncio.wait_for(reader.read(-1), 10)) < 5
        writer.close()


async def test_other_connections_live_on_after_a_cut():
    async with echoing() as proxy:
        pairs = [await _connected(proxy) for _ in range(3)]
        proxy.cut_one("FIN")
        for _, writer in pairs:
            writer.write(MESSAGE)
        whole = 0
        for reader, _ in pairs:
            with suppress(asyncio.IncompleteReadError):
                whole += await asyncio.wait_for(reader.readexactly(len(MESSAGE)), 10) == MESSAGE
        assert whole == 2
        for _, writer in pairs:
            writer.close()


async def test_a_stall_holds_everything_back_and_then_lets_it_go_on():
    async with echoing() as proxy:
        reader, writer = await _connected(proxy)
        assert proxy.stall_one(3600)
        await asyncio.sleep(0)
        writer.write(MESSAGE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        proxy.release()
        assert await asyncio.wait_for(reader.readexactly(len(MESSAGE)), 10) == MESSAGE
        writer.close()


async def test_a_server_that_is_down_resets_the_connection():
    async with echoing() as proxy:
        down = Proxy(1, seed=1)
        await down.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", down.port)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(1), 10) == b""
        assert not down.cut_one("FIN")
        assert not proxy.stall_one(1)
        writer.close()
        await down.stop()
