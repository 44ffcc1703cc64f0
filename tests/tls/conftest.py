from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lot_grpc.testing.certificates import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def stranger() -> Authority:
    """An authority that nobody trusts."""
    return Authority("a stranger")


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)
