"""Changed files are taken over, and bad ones are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from lot_grpc.tls.certificates import CertificateError, CertificateFiles
from lot_grpc.tls.reloading import ReloadedCertificates

DAY = timedelta(days=1)
BAD = "cannot use the changed certificates; keeping the previous ones"


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def files(authority, tmp_path) -> CertificateFiles:
    return CertificateFiles(*authority.issue("first.test").write(tmp_path, "server"))


@pytest.fixture
def certificates(files, clock) -> ReloadedCertificates:
    return ReloadedCertificates(files, clock)


def events(logged: list[Any]) -> list[str]:
    return [line["event"] for line in logged]


def test_files_that_cannot_be_used_at_the_start_are_refused(files):
    files.key.unlink()
    with pytest.raises(CertificateError):
        ReloadedCertificates(files)


def test_unchanged_files_are_not_read_again(certificates, monkeypatch):
    first = certificates.current
    monkeypatch.setattr("lot_grpc.tls.reloading.read_certificates", None)
    assert certificates.refresh() is first


def test_a_changed_pair_is_taken_over_and_told(certificates, authority, tmp_path):
    authority.issue("second.test").write(tmp_path, "server")
    with capture_logs() as logged:
        assert certificates.refresh().names == ("second.test",)
        certificates.refresh()
    assert events(logged) == ["reloaded certificates"]
    assert logged[0]["names"] == ("second.test",)


def test_a_pair_behind_a_link_that_is_switched_is_taken_over(authority, tmp_path, clock):
    """As Kubernetes replaces a mounted secret."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        authority.issue(f"{name}.test").write(tmp_path / name, "tls")
    link = tmp_path / "data"
    link.symlink_to("one")
    certificates = ReloadedCertificates(CertificateFiles(link / "tls.pem", link / "tls.key"), clock)
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(link)
    assert certificates.refresh().names == ("two.test",)


def test_bad_files_are_told_once_and_again_when_they_are_good(
    certificates, files, authority, tmp_path
):
    good = certificates.current
    other = authority.issue("second.test")
    with capture_logs() as logged:
        files.certificate.write_bytes(other.certificate)  # its key comes a moment later
        assert [certificates.refresh() for _ in range(3)] == [good] * 3
        assert events(logged) == [BAD]
        assert "is not the key of the first certificate" in logged[0]["why"]
        files.certificate.write_text("nothing")
        assert [certificates.refresh() for _ in range(3)] == [good] * 3
        assert events(logged) == [BAD, BAD]
        other.write(tmp_path, "server")
        assert certificates.refresh().names == ("second.test",)
        assert events(logged) == [BAD, BAD, "reloaded certificates"]
    assert other.key.decode() not in str(logged)


def test_files_that_are_gone_and_come_back_are_told(certificates, files, tmp_path):
    aside = tmp_path / "aside"
    with capture_logs() as logged:
        files.key.rename(aside)
        assert certificates.refresh().names == ("first.test",)
        aside.rename(files.key)
        assert certificates.refresh().names == ("first.test",)
    assert events(logged) == [BAD, "reloaded certificates"]


def test_an_expired_replacement_is_not_used(certificates, authority, tmp_path):
    authority.issue("late.test", since=-9 * DAY, until=-DAY).write(tmp_path, "server")
    with capture_logs() as logged:
        assert certificates.refresh().names == ("first.test",)
    assert "expired on" in logged[0]["why"]


def test_whatever_goes_wrong_connections_go_on(certificates, authority, tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    authority.issue("second.test").write(tmp_path, "server")
    monkeypatch.setattr("lot_grpc.tls.reloading.read_certificates", broken)
    with capture_logs() as logged:
        assert certificates.refresh().names == ("first.test",)
    assert logged[0]["why"] == "RuntimeError('broken')"


def test_a_certificate_that_ends_soon_is_told_once_a_day(certificates, clock):
    with capture_logs() as logged:
        for _ in range(91 * 4):
            clock.now += timedelta(hours=6)
            certificates.refresh()
    told = events(logged)
    assert 13 <= told.count("the certificate expires soon") <= 14
    assert told[-1] == "the certificate has expired: clients refuse it"
