from __future__ import annotations

import asyncio
import socket

import pytest

from lot_grpc.cli.check import NetworkBlockedError, network_blocked


@pytest.fixture
def listener():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()


def test_look_ups_and_connections_are_refused_and_noted(listener):
    with network_blocked() as tried:
        with pytest.raises(NetworkBlockedError):
            socket.getaddrinfo("hub.invalid", 443)
        with socket.socket() as client, pytest.raises(NetworkBlockedError):
            client.connect(listener)
        with socket.socket() as client, pytest.raises(NetworkBlockedError):
            client.connect_ex(listener)
        with socket.socket(type=socket.SOCK_DGRAM) as client, pytest.raises(NetworkBlockedError):
            client.sendto(b"x", ("192.0.2.1", 53))
    assert tried == ["hub.invalid", "127.0.0.1", "127.0.0.1", "192.0.2.1"]


def test_the_event_loop_is_refused_too(listener):
    async def connect():
        await asyncio.open_connection(*listener)

    with network_blocked() as tried, pytest.raises(NetworkBlockedError):
        asyncio.run(connect())
    assert tried == ["127.0.0.1"]


def test_an_allowed_host_is_reached_by_name_and_by_address(listener):
    with network_blocked(["localhost"]) as tried:
        found = socket.getaddrinfo("localhost", listener[1], socket.AF_INET, socket.SOCK_STREAM)
        with socket.socket() as client:
            client.connect(found[0][4])
    assert tried == []


def test_local_sockets_go_on_working():
    with network_blocked() as tried:
        left, right = socket.socketpair()
        with left, right:
            left.sendall(b"x")
            assert right.recv(1) == b"x"
    assert tried == []


def test_afterwards_everything_is_as_before(listener):
    before = socket.getaddrinfo, socket.socket.connect
    with network_blocked():
        pass
    assert (socket.getaddrinfo, socket.socket.connect) == before
    with socket.socket() as client:
        client.connect(listener)
