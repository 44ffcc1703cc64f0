"""Settings of TLS."""

from __future__ import annotations

from pydantic import field_validator

from lot_grpc.addresses import normal_address
from lot_grpc.settings_types import Group, OptionalPath


class TlsSettings(Group):
    """The server's certificate, and which client certificates it asks for."""

    env_prefix = "LOT_TLS_"

    cert: OptionalPath = None
    key: OptionalPath = None
    client_ca: OptionalPath = None
    client_address: str = ""

    @field_validator("client_address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        return normal_address(value) if value else ""

    @property
    def enabled(self) -> bool:
        """Whether connections are encrypted."""
        return self.cert is not None

    @property
    def requires_certificates(self) -> bool:
        """Whether every client must present a certificate."""
        return self.client_ca is not None and not self.client_address


def tls_contradictions(tls: TlsSettings, address: str) -> list[str]:
    """What contradicts each other; ``address`` is the server's own."""
    found = []
    if (tls.cert is None) != (tls.key is None):
        given, missing = ("CERT", "KEY") if tls.cert else ("KEY", "CERT")
        found.append(
            f"LOT_TLS_{given} needs LOT_TLS_{missing}: a certificate and its key, as PEM files"
        )
    if tls.client_ca is not None and tls.cert is None:
        found.append(
            "LOT_TLS_CLIENT_CA needs LOT_TLS_CERT and LOT_TLS_KEY: client certificates are part of "
            "TLS"
        )
    if tls.client_address and tls.client_ca is None:
        found.append(
            "LOT_TLS_CLIENT_ADDRESS needs LOT_TLS_CLIENT_CA: the certificates of the authorities "
            "that issue client certificates"
        )
    if tls.client_address == address and not address.endswith(":0"):
        found.append(
            f"LOT_TLS_CLIENT_ADDRESS={address} is LOT_ADDRESS as well; give it another port, or "
            "remove it so that every client must present a certificate"
        )
    return found
