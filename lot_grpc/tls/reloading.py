"""Takes over changed certificate files while the server runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import structlog

from lot_grpc.telemetry.metrics import CERTIFICATE_EXPIRY, RELOADS
from lot_grpc.tls.certificates import (
    SOON,
    CertificateError,
    CertificateFiles,
    Certificates,
    day,
    read_certificates,
    warnings,
)

_log = structlog.get_logger()

_REMIND = timedelta(days=1)

Signature = tuple[tuple[int, ...], ...]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ReloadedCertificates:
    """The last good content of the files.

    Attributes:
        current: what is used for new connections.
        warnings: what an operator should change, as of the start; sentences.

    gRPC asks for it with each new connection, which at the latest is the server's own: it connects
    to its ports every few seconds. Files that cannot be used are logged once and tried again.
    """

    def __init__(self, files: CertificateFiles, now: Callable[[], datetime] = _utc_now) -> None:
        """Read the files.

        Raises:
            CertificateError: they cannot be used.
        """
        self._files = files
        self._now = now
        self._lock = threading.Lock()  # connections are made in threads of gRPC
        self._signature = self._sign()
        self.current = read_certificates(files, now())
        CERTIFICATE_EXPIRY.set(self.current.expire_time.timestamp())
        self.warnings = warnings(files, self.current, now())
        self._reminded = now()
        self._refused = ""

    def refresh(self) -> Certificates:
        """Read changed files; the last good ones if they cannot be used. Never raises."""
        with self._lock:
            try:
                self._read_changed()
                self._remind()
            except Exception as error:  # noqa: BLE001 - whatever it is, connections go on
                self._refuse(error)
            return self.current

    def credentials(self, *, client_certificates: bool) -> grpc.ServerCredentials:
        """Credentials for a port. Open connections keep the certificate that they began with.

        ``client_certificates``: whether each client must show one that ``client_ca`` vouches for.
        """
        used = self.current

        def changed() -> Any:  # None: as before
            nonlocal used
            newest = self.refresh()
            if newest is used:
                return None
            used = newest
            return _configuration(newest)

        return grpc.dynamic_ssl_server_credentials(
            _configuration(used), changed, require_client_authentication=client_certificates
        )

    def _read_changed(self) -> None:
        signature = self._sign()
        if signature == self._signature and not self._refused:
            return
        self.current = read_certificates(self._files, self._now())
        self._signature = signature
        self._refused = ""
        RELOADS.add("certificate", "ok")
        CERTIFICATE_EXPIRY.set(self.current.expire_time.timestamp())
        self._reminded = self._now()
        expires = day(self.current.expire_time)
        _log.info("reloaded certificates", names=self.current.names, expires=expires)

    def _refuse(self, error: Exception) -> None:
        RELOADS.add("certificate", "failed")
        why = error.message if isinstance(error, CertificateError) else repr(error)
        if why != self._refused:
            self._refused = why
            _log.error("cannot use the changed certificates; keeping the previous ones", why=why)

    def _remind(self) -> None:
        """Log once a day that the certificate in use ends."""
        now = self._now()
        if now - self._reminded < _REMIND or self.current.expire_time - now >= SOON:
            return
        self._reminded = now
        expires = day(self.current.expire_time)
        if now < self.current.expire_time:
            _log.warning("the certificate expires soon", expires=expires)
        else:
            _log.error("the certificate has expired: clients refuse it", expires=expires)

    def _sign(self) -> Signature:
        """Changes when a file does: its content, its mode, or what a link leads to."""
        stats = [path.stat() for path in self._files.paths if path.exists()]
        return tuple((one.st_dev, one.st_ino, one.st_size, one.st_ctime_ns) for one in stats)


def _configuration(found: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(found.key, found.chain)], root_certificates=found.client_ca
    )
