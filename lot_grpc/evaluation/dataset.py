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
    """A document to find. ``where`` names its line, for messages."""

    id: str
    text: str
    title: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    @property
    def blank(self) -> bool:
        """Whether it has no text to find it by; such documents are omitted, and counted."""
        return not self.text.strip() and not self.title.strip()


@dataclass(frozen=True, slots=True)
class EvalQuery:
    """A query with its known answers.

    ``judged``: gain by document id; 0 and below: not relevant. ``exclude``: documents that do not
    count, for example the one that the query was made from. ``filter_value``: the required value of
    the set's filter field, empty without one. ``groups``: further groups in which it is counted.
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
    """A set. ``filter_field`` empty: every document may answer every query."""

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
        """The set with ``count`` of the answerable queries, always the same; 0: all queries."""
        if not count:
            return self
        pool = self.answerable
        if count >= len(pool):
            return replace(self, queries=pool)
        chosen = random.Random(_SAMPLE_SEED).sample(range(len(pool)), count)  # noqa: S311 - no secret
        return replace(self, queries=tuple(pool[index] for index in sorted(chosen)))

    def fingerprints(self) -> dict[str, str]:
        """Hashes that show whether two runs measured the same set."""
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
