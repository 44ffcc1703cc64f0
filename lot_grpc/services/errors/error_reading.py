"""Parses and compares long errors outside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Final

from lot_grpc.domain.error_text.signature import (
    ErrorRead,
    Signature,
    read_error,
    same_errors,
    wrappers,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.ports import Record
from lot_grpc.services.records.error_solutions import error_texts

_LONG: Final = 1_024
"""Messages of at least this many characters are parsed in a thread."""

_REMEMBERED: Final = 4_096
"""Stored errors whose parsed form is cached; each takes a few KB at most."""

_KEY_CHARACTERS: Final = 256
"""Longer errors are cached by their hash."""


async def read_aside(error_type: str, message: str) -> ErrorRead:
    """``read_error``, in a thread if the message is long. The result is cached for later calls."""
    if len(message) <= _LONG:
        return read_error(error_type, message)
    return await asyncio.to_thread(read_error, error_type, message)


class StoredErrors:
    """Compares an error with stored ones, whose parsed form it caches."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, ...], ErrorRead] = {}
        self._remembering = Lock()

    async def compared(
        self, error: ErrorRead, records: Sequence[Record], *, wrapped: bool = False
    ) -> list[tuple[Signature, Signature] | None]:
        """The signatures by which each is the same error. In a thread, since many take a while.

        ``wrapped``: what these unrelated errors have in common counts little.
        """

        def compare() -> list[tuple[Signature, Signature] | None]:
            stored = [self._error_of(record) for record in records]
            little = wrappers(error, stored) if wrapped else frozenset()
            return same_errors(error, stored, little)

        return await asyncio.to_thread(compare) if records else []

    def _error_of(self, record: Record) -> ErrorRead:
        """A stored error, parsed once, since a long log takes a while."""
        texts = error_texts(record)
        key = texts if sum(map(len, texts)) <= _KEY_CHARACTERS else (content_hash(texts),)
        read = self._errors.get(key)
        if read is None:
            read = read_error(*texts)
            with self._remembering:
                self._errors[key] = read
                if len(self._errors) > _REMEMBERED:
                    del self._errors[next(iter(self._errors))]
        return read
