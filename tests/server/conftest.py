from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.service import Lot, reaching, serving


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        default="",
        metavar="HOST:PORT",
        help="prove the service at this address instead of one of our own (pytest tests/server)",
    )


@pytest.fixture
async def lot(request: pytest.FixtureRequest) -> AsyncIterator[Lot]:
    """The service to prove, and a namespace of it that is the test's own."""
    target = request.config.getoption("--target", default="")
    async with reaching(target) if target else serving() as service:
        yield service
