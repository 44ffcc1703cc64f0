"""Reads certificates and their key, and says what is wrong with them."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from lot_grpc.domain.errors import StartupError

SOON = timedelta(days=14)
"""How long before its end a certificate is warned about."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files: the certificate with its chain, its key, and the authorities of clients."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files that are configured."""
        return (self.certificate, self.key, *([self.client_ca] if self.client_ca else []))


@dataclass(frozen=True, slots=True)
class Certificates:
    """The content of the files, checked.

    Attributes:
        names: Host names and addresses of the certificate.
        expire_time: When the certificate ends.
    """

    chain: bytes
    key: bytes
    client_ca: bytes | None
    names: tuple[str, ...]
    expire_time: datetime

    def __repr__(self) -> str:
        """Without the key."""
        return f"Certificates({', '.join(self.names)}, until {day(self.expire_time)})"


class CertificateError(StartupError):
    """The files cannot be used. The message names the file and what to do; never its content."""


def read_certificates(files: CertificateFiles, now: datetime) -> Certificates:
    """The content of the files.

    Raises:
        CertificateError: one cannot be read or parsed, has expired, or does not fit.
    """
    chain, key = _read(files.certificate), _read(files.key)
    leaf = _parsed(files.certificate, chain)[0]
    if _public_key(files.key, key) != leaf.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    ):
        raise CertificateError(
            f"{files.key} is not the key of the first certificate in {files.certificate}; "
            "both files must be of the same pair, and the server's certificate must come first"
        )
    _check_time(files.certificate, [leaf], now)
    client_ca = None
    if files.client_ca is not None:
        client_ca = _read(files.client_ca)
        _check_time(files.client_ca, _parsed(files.client_ca, client_ca), now)
    return Certificates(chain, key, client_ca, names_of(leaf), leaf.not_valid_after_utc)


def warnings(files: CertificateFiles, found: Certificates, now: datetime) -> list[str]:
    """What an operator should change although it works now. Sentences."""
    said = []
    if found.expire_time - now < SOON:
        said.append(
            f"{files.certificate} expires on {day(found.expire_time)}; renew it; the server "
            "reads the new file by itself"
        )
    if not found.names:
        said.append(
            f"{files.certificate} has no subject alternative name, so most clients refuse it; "
            "have it issued for the host name that they call"
        )
    mode = stat.S_IMODE(files.key.stat().st_mode)
    if mode & stat.S_IRWXO:
        said.append(
            f"every user of this machine may open {files.key} (mode {mode:04o}); "
            f"run `chmod o= {files.key}`"
        )
    return said


def day(time: datetime) -> str:
    """A time as people write it, to the minute."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def names_in(chain: bytes) -> tuple[str, ...]:
    """The host names and addresses of the first certificate of a chain in PEM; empty for none."""
    try:
        return names_of(x509.load_pem_x509_certificates(chain)[0])
    except ValueError:
        return ()


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The host names and addresses of a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = found.get_values_for_type(x509.DNSName)
    return (*names, *(str(one) for one in found.get_values_for_type(x509.IPAddress)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(
            f"cannot read {path}: {error.strerror or error}; "
            "it must exist and be readable by the user that runs the server"
        ) from None


def _parsed(path: Path, content: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise CertificateError(
            f"{path} has no certificate in PEM; it starts with -----BEGIN CERTIFICATE-----"
        ) from None


def _public_key(path: Path, content: bytes) -> bytes:
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise CertificateError(
            f"{path} is encrypted, and a server cannot ask for its passphrase; "
            f"write it without one: `openssl pkey -in {path}`"
        ) from None
    except Exception:  # noqa: BLE001 - the parser's own text might quote the key
        raise CertificateError(
            f"{path} has no private key in PEM that can be used; RSA and EC keys can"
        ) from None
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _check_time(path: Path, certificates: Sequence[x509.Certificate], now: datetime) -> None:
    """At least one must be valid."""
    if any(one.not_valid_before_utc <= now < one.not_valid_after_utc for one in certificates):
        return
    if all(one.not_valid_after_utc <= now for one in certificates):
        ended = max(one.not_valid_after_utc for one in certificates)
        raise CertificateError(f"{path} expired on {day(ended)}; replace it by a new one")
    begins = min(one.not_valid_before_utc for one in certificates if one.not_valid_after_utc > now)
    raise CertificateError(
        f"{path} is not valid before {day(begins)}; check the clock of this machine"
    )
