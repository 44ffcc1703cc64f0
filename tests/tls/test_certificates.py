"""What the files must be like, and what is said about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lot_grpc.testing.certificates import Authority
from lot_grpc.tls.certificates import (
    CertificateError,
    CertificateFiles,
    read_certificates,
    warnings,
)

DAY = timedelta(days=1)


@pytest.fixture
def files(authority, tmp_path) -> CertificateFiles:
    """Good ones, with the authority of the clients."""
    certificate, key = authority.issue("lot.test", "10.0.0.7").write(tmp_path, "server")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    return CertificateFiles(certificate, key, ca)


def refusal(files: CertificateFiles) -> str:
    with pytest.raises(CertificateError) as caught:
        read_certificates(files, datetime.now(UTC))
    return caught.value.message


def test_good_files_are_read_with_names_and_end(files, now):
    found = read_certificates(files, now)
    assert found.names == ("lot.test", "10.0.0.7")
    assert timedelta(days=89) < found.expire_time - now <= timedelta(days=90)
    assert found.client_ca == files.client_ca.read_bytes()
    assert warnings(files, found, now) == []
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize("which", ["certificate", "key", "client_ca"])
def test_a_file_that_is_not_there_or_is_no_pem_is_named(files, which):
    path: Path = getattr(files, which)
    path.write_text("not PEM")
    told = refusal(files)
    assert str(path) in told
    assert "in PEM" in told
    assert "not PEM" not in told
    path.unlink()
    assert f"cannot read {path}: No such file" in refusal(files)


def test_a_file_that_may_not_be_read_is_told(files, monkeypatch):
    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "Permission denied; it must exist and be readable by the user" in refusal(files)


def test_a_key_of_another_certificate_is_refused(files, authority):
    files.key.write_bytes(authority.issue("lot.test").key)
    assert f"{files.key} is not the key of the first certificate in {files.certificate}" in refusal(
        files
    )


def test_a_chain_in_the_wrong_order_is_refused(files, authority):
    files.certificate.write_bytes(authority.pem + files.certificate.read_bytes())
    assert "the server's certificate must come first" in refusal(files)
    own = files.certificate.read_bytes().removeprefix(authority.pem)
    files.certificate.write_bytes(own + authority.pem)
    assert read_certificates(files, datetime.now(UTC)).names == ("lot.test", "10.0.0.7")


def test_an_encrypted_key_is_refused_with_how_to_decrypt_it(files):
    key = load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    told = refusal(files)
    assert f"{files.key} is encrypted, and a server cannot ask for its passphrase" in told
    assert f"`openssl pkey -in {files.key}`" in told


@pytest.mark.parametrize(
    ("since", "until", "told"),
    [(-9 * DAY, -DAY, "expired on "), (DAY, 9 * DAY, "is not valid before ")],
)
def test_a_certificate_outside_its_time_is_refused(files, authority, since, until, told):
    issued = authority.issue("lot.test", since=since, until=until)
    issued.write(files.certificate.parent, "server")
    assert f"{files.certificate} {told}" in refusal(files)


def test_one_expired_authority_among_others_does_not_matter(files, authority, now):
    expired = authority.issue("x", since=-9 * DAY, until=-DAY).certificate
    files.client_ca.write_bytes(expired + authority.pem)
    assert read_certificates(files, now)
    files.client_ca.write_bytes(expired)
    assert f"{files.client_ca} expired on" in refusal(files)


def test_what_should_be_changed_is_said(tmp_path, now):
    certificate, key = Authority().issue(until=13 * DAY).write(tmp_path, "server")
    key.chmod(0o644)
    files = CertificateFiles(certificate, key)
    soon, nameless, opened = warnings(files, read_certificates(files, now), now)
    assert f"{certificate} expires on {now + 13 * DAY:%Y-%m-%d}" in soon
    assert "no subject alternative name" in nameless
    assert opened.endswith(f"(mode 0644); run `chmod o= {key}`")
    key.chmod(0o640)  # as Kubernetes mounts it for the group
    assert len(warnings(files, read_certificates(files, now), now)) == 2
