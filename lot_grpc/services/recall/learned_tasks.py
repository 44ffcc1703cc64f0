"""Matches LEARNED patterns to a query by their own regular expressions."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.pattern import PatternKind
from lot_grpc.ports import Condition, Equals, Missing, Not, VectorStore
from lot_grpc.regexes import compiled
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

MOST_TRIED = 1_000
"""How many patterns, the newest, are tried on a query. They are read in one call."""


class LearnedTasks:
    """Finds the LEARNED patterns whose ``task_type_pattern`` matches a query."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def matching(
        self, namespace: str, texts: Sequence[str], where: Sequence[Condition]
    ) -> set[str]:
        """The points of LEARNED patterns among ``where`` whose ``task_type_pattern`` matches.

        Matching any one of the texts is enough. The newest ``MOST_TRIED`` patterns with an
        expression are tried. An expression that RE2 refuses, which the store of an older version
        may contain, matches nothing.
        """
        learned = [
            *where,
            Equals("kind", PatternKind.LEARNED.value),
            Not(Missing("task_type_pattern")),
        ]
        found: set[str] = set()
        tried, time_slice = 0, TimeSlice()
        async for record in scan(
            self._store,
            PATTERNS,
            namespace,
            learned,
            payload=("task_type_pattern",),
            descending=True,
            batch=MOST_TRIED,
        ):
            if _matches(record.payload["task_type_pattern"], texts):
                found.add(record.id)
            tried += 1
            if tried >= MOST_TRIED:
                break
            await time_slice.give_way()
        return found


def _matches(regex: str, texts: Sequence[str]) -> bool:
    try:
        made = compiled(regex)
        return any(made.matches(text) for text in texts)
    except ValueError:
        return False
