"""Turns the client's exceptions into domain errors."""

from __future__ import annotations

from types import TracebackType

from lot_grpc.domain.errors import LotError, StoreUnavailableError


class Talking:
    """Turns whatever the client raises into ``StoreUnavailableError``, the cause chained."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, LotError):
            raise StoreUnavailableError(
                f"the Qdrant server at {self._place} did not respond as expected "
                f"({type(error).__name__}); check that it runs and is reachable, and that the API "
                "key is right (the cause is in the log)"
            ) from error


def without_credentials(url: str) -> str:
    """The URL without user name and password, safe to show."""
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
