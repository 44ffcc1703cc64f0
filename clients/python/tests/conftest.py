"""A server is given by LOT_ADDRESS; every test has a namespace of its own on it."""

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from cutting import Cutter
from either import Either, of_tasks, of_threads
from lot_client import LotClient
from scripted import Scripted


@pytest.fixture
def address() -> str:
    found = os.environ.get("LOT_ADDRESS")
    if not found:
        pytest.skip("LOT_ADDRESS names no server; `make test-python` starts one")
    return found


@pytest.fixture
def namespace() -> str:
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture(params=[of_tasks, of_threads], ids=["async", "sync"])
def either(request: pytest.FixtureRequest) -> Either:
    """Makes a client of either kind, driven alike."""
    return request.param


@pytest.fixture
async def client(either: Either, address: str, namespace: str) -> AsyncIterator[Any]:
    """A client of either kind."""
    async with either(address, namespace=namespace) as made:
        yield made


@pytest.fixture
def sync_client(address: str, namespace: str) -> Iterator[LotClient]:
    with LotClient(address, namespace=namespace) as made:
        yield made


@pytest.fixture
def cutter(address: str) -> Iterator[Cutter]:
    with Cutter(address) as made:
        yield made


@pytest.fixture
async def cut_client(either: Either, cutter: Cutter, namespace: str) -> AsyncIterator[Any]:
    """Likewise behind a proxy that loses connections."""
    async with either(cutter.address, namespace=namespace) as made:
        yield made


@pytest.fixture
def server() -> Iterator[Scripted]:
    """A server in this process whose answers a test decides."""
    with Scripted() as made:
        yield made
