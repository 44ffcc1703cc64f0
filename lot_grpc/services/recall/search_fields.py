"""The vectors and the text by which the records of a collection are found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lot_grpc.domain.search_text import SearchText
from lot_grpc.ports import Record


@dataclass(frozen=True, slots=True)
class SearchFields:
    """A searchable collection.

    ``dense`` names its dense vectors; a record is scored by the nearest of those it has.
    """

    collection: str
    dense: tuple[str, ...]
    text_of: Callable[[Record], SearchText]

    async def texts(self, records: Sequence[Record]) -> list[SearchText]:
        """The text by which each record is found, in order.

        Runs in a thread, since long error messages take a while to read.
        """
        return await asyncio.to_thread(lambda: [self.text_of(one) for one in records])
