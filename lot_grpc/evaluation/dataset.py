"""A retrieval set: documents, queries, and which documents answer which query."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_SAMPLE_SEED = 20_240_229


@dataclass(frozen=True, slots=True)
class Document:
    """What is to be found. ``where`` names its line, for messages."""

    id: str
    text: str
    title: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    @property
    def blank(self) -> bool:
        """Whether there is nothing to find it by; such documents are left out, and counted."""
        return not self.text.strip() and not self.title.strip()


@dataclass(frozen=True, slots=True)
class EvalQuery:
    """What is asked.

    ``judged``: gain by document id, 0 and below not relevant. ``exclude``: documents that do not
    count, for example the one that the query was made from. ``filter_value``: what the set's
    filter field has to be, empty without one. ``groups``: what it is counted under besides.
    """

    id: str
    text: str
    judged: Mapping[str, float] = field(default_factory=dict)
    exclude: frozenset[str] = frozenset()
    filter_value: str = ""
    groups: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether any document is relevant; averages are over these queries."""
        return any(gain > 0 for gain in self.judged.values())


@dataclass(frozen=True, slots=True)
class Dataset:
    """One set. ``filter_field`` empty: every document may answer every query."""

    name: str
    folder: Path
    documents: tuple[Document, ...]
    queries: tuple[EvalQuery, ...]
    filter_field: str = ""

    @property
    def answerable(self) -> tuple[EvalQuery, ...]:
        """The queries that are measured."""
        return tuple(query for query in self.queries if query.answerable)

    def sampled(self, count: int) -> Dataset:
        """With ``count`` of the answerable queries, always the same ones; 0 is all queries."""
        if not count:
            return self
        pool = self.answerable
        if count >= len(pool):
            return replace(self, queries=pool)
        chosen = random.Random(_SAMPLE_SEED).sample(range(len(pool)), count)  # noqa: S311 - no secret
        return replace(self, queries=tuple(pool[index] for index in sorted(chosen)))

    def fingerprints(self) -> dict[str, str]:
        """Hashes by which two runs know that they measured the same thing."""
        return {
            "documents": _hash([[d.id, d.title, d.text] for d in self.documents]),
            "queries": _hash(
                [
                    [q.id, q.text, sorted(q.judged.items()), sorted(q.exclude)]
                    for q in sorted(self.queries, key=lambda q: q.id)
                ]
            ),
        }


def _hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
