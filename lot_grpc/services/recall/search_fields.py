"""The kinds that are searched: where each lies, by which vectors and by what text it is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.episode import search_text as episode_text
from lot_grpc.domain.error_solution import search_text as error_solution_text
from lot_grpc.domain.memory import search_text as memory_text
from lot_grpc.domain.pattern import search_text as pattern_text
from lot_grpc.domain.search_text import SearchText
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PASSAGE_VECTORS,
    PATTERNS,
    SOLVED_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.episodes import episode_from_record
from lot_grpc.services.records.error_solutions import error_solution_from_record
from lot_grpc.services.records.memories import memory_from_record
from lot_grpc.services.records.patterns import pattern_from_record


@dataclass(frozen=True, slots=True)
class SearchFields:
    """A kind. ``dense`` names its dense vectors; a thing counts by the nearest of those it has."""

    collection: str
    dense: tuple[str, ...]
    text_of: Callable[[Record], SearchText]


SEARCHED_PATTERNS: Final = SearchFields(
    PATTERNS,
    (TEXT_VECTOR, CODE_VECTOR),
    lambda record: pattern_text(pattern_from_record(record).content),
)
SEARCHED_EPISODES: Final = SearchFields(
    EPISODES,
    (TEXT_VECTOR, SOLVED_VECTOR),
    lambda record: episode_text((one := episode_from_record(record)).start, one.end),
)
SEARCHED_MEMORIES: Final = SearchFields(
    MEMORIES,
    (TEXT_VECTOR, CODE_VECTOR, PASSAGE_VECTORS),
    lambda record: memory_text(memory_from_record(record).content),
)
SEARCHED_ERROR_SOLUTIONS: Final = SearchFields(
    ERROR_SOLUTIONS,
    (TEXT_VECTOR, SOLVED_VECTOR),
    lambda record: error_solution_text(error_solution_from_record(record).content),
)
ALL_SEARCHED: Final = (
    SEARCHED_PATTERNS,
    SEARCHED_EPISODES,
    SEARCHED_MEMORIES,
    SEARCHED_ERROR_SOLUTIONS,
)
_TEXT_OF: Final = {one.collection: one.text_of for one in ALL_SEARCHED}
SEARCHED_COLLECTIONS: Final = tuple(_TEXT_OF)


async def texts_of(collection: str, records: Sequence[Record]) -> list[SearchText]:
    """What each record of a searched collection is found by, in order.

    In a thread, since long error messages take a while to read.
    """
    text_of = _TEXT_OF[collection]
    return await asyncio.to_thread(lambda: [text_of(one) for one in records])
