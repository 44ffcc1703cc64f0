"""What tests look at most of an error that was read."""

from __future__ import annotations

from lot_grpc.domain.error_text.signature import read_error


def signature_of(error_type: str, message: str) -> str:
    """The most telling signature of an error; "" where it has none."""
    return read_error(error_type, message).signature
