"""What each metric stands for is counted when it happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lot_grpc
from lot_grpc.audit_log import AuditFile
from lot_grpc.auth.files import FileError, WatchedFile
from lot_grpc.domain.errors import (
    AuthUnavailableError,
    CredentialsInvalidError,
    CredentialsRequiredError,
    LotError,
    QuotaExceededError,
    RateLimitedError,
)
from lot_grpc.domain.rate_limits import too_many_at_once
from lot_grpc.log_lines import AuditReports
from lot_grpc.server.status import to_status
from lot_grpc.telemetry import metrics
from lot_grpc.telemetry.instruments import Counter, Metric

NAMES = {name: one for name, one in vars(metrics).items() if isinstance(one, Metric)}
CHANGES = {"add", "of", "set", "observe", "time", "follow"}


def changed() -> Iterator[str]:
    """The metrics that the code of the service changes."""
    for path in Path(lot_grpc.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in CHANGES:
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                yield name


def test_no_metric_is_without_a_place_that_counts() -> None:
    assert not NAMES.keys() - set(changed())


def growth(counter: Counter, before: dict[Any, float]) -> dict[Any, float]:
    now = counter.values()
    return {k: v - before.get(k, 0) for k, v in now.items() if v != before.get(k, 0)}


WRONG, OVER, FULL = metrics.AUTH_FAILURES, metrics.RATE_LIMITED, metrics.QUOTA_REFUSED


def too_much(unit: str) -> LotError:
    return QuotaExceededError("n", unit, limit=1, used=1, added=1)


@pytest.mark.parametrize(
    ("error", "counter", "label"),
    [
        (CredentialsRequiredError(), WRONG, "missing"),
        (CredentialsInvalidError("key 1 (a) is expired", "expired"), WRONG, "expired"),
        (CredentialsInvalidError("too long"), WRONG, "malformed"),
        (AuthUnavailableError(), WRONG, "unavailable"),
        (RateLimitedError("x", limit="2 calls per second", retry_seconds=1), OVER, "rate"),
        (too_many_at_once(1, streaming=False), OVER, "concurrency"),
        (too_many_at_once(1, streaming=True), OVER, "streams"),
        (too_much("record"), FULL, "records"),
        (too_much("byte"), FULL, "bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_refuses_is_counted_once_by_its_cause(
    error: LotError, counter: Counter, label: str
) -> None:
    before = counter.values()
    assert (label,) in before, "a query of its growth would not see the first"
    to_status(error)
    assert growth(counter, before) == {(label,): 1}


def test_audit_records_are_counted_and_lost_ones_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, lost = metrics.AUDIT_RECORDS.values()[()], metrics.AUDIT_LOST.values()[()]
    path = tmp_path / "audit"
    log = AuditFile(path, reads=False, max_bytes=1000, files=2, reports=AuditReports())
    log.write({"method": "a"})
    path.unlink()
    path.mkdir()
    for _ in range(2):
        log.write({"method": "b"})
    path.rmdir()
    log.write({"method": "c"})
    log.close()
    assert metrics.AUDIT_RECORDS.values()[()] - written == 2
    assert metrics.AUDIT_LOST.values()[()] - lost == 2


def test_files_that_are_read_again_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lot_grpc.auth.files.LOOK_SECONDS", 0.0)

    def parse(content: bytes) -> bytes:
        if content == b"broken":
            raise FileError("broken")
        return content

    path = tmp_path / "keys"
    path.write_bytes(b"1")
    path.chmod(0o600)
    file = WatchedFile(path, "the key file", parse, private=True, metric="keys")
    before = metrics.RELOADS.values()
    assert before.keys() >= {("keys", "ok"), ("keys", "failed")}
    file.refresh()
    path.write_bytes(b"2")
    file.refresh()
    path.write_bytes(b"broken")
    file.refresh()
    file.refresh()
    assert growth(metrics.RELOADS, before) == {("keys", "ok"): 1, ("keys", "failed"): 2}
