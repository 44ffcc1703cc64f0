"""Hits of which is known whether they are right, from retrieval sets and from ``pairs``.

Of each query those documents are taken that a recall would look at: the nearest by meaning and the
best by words. Large sets are sampled, always in the same way: all documents that are right for a
sampled query, and others up to a bound.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.error_solution import search_text as error_text
from lot_grpc.domain.error_text.signature import read_error, same_errors
from lot_grpc.domain.memory import MemoryContent, MemoryKind
from lot_grpc.domain.memory import search_text as memory_text
from lot_grpc.domain.passages import passages_of
from lot_grpc.domain.pattern import search_text as pattern_text
from lot_grpc.domain.search_text import SearchText
from lot_grpc.evaluation.as_error_solution import are_errors, as_error_solution
from lot_grpc.evaluation.as_pattern import are_code, as_pattern
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.lexical.bm25 import document_vector, lexical_query
from tests.calibration.pairs import TaskPair
from tests.calibration.vectors import CachedVectors
from tests.fusion.conversations import conversations

SETS = ("webarena", "tau_retail", "humanevalpack", "programs", "code_search")
"""Of tasks with right answers; of some a field narrows the search."""
ERRORS = "errors"
"""Of errors with the right solutions: no tasks, so they have weights of their own."""
CONVERSATIONS = "conversations"
MEMORIES = ("scifact", CONVERSATIONS)
"""Of questions and claims with the memories that answer them. They take no part in the fit."""
FILTERS = {"humanevalpack": "language", "programs": "language"}

QUERIES, DOCUMENTS = 400, 2_000
"""The most that are taken of a set."""
NEAREST, BY_WORDS = 5, 5


@dataclass(frozen=True)
class Judged:
    """A hit: what was looked for, what was found, how near it is, and whether it is right."""

    source: str
    query: str
    text: SearchText
    similarity: float
    right: bool
    kind: str = ""


@dataclass(frozen=True)
class Searched:
    """What is found for a query: with its answers stored, and once they are removed."""

    answered: Sequence[Judged]
    removed: Sequence[Judged]


def sampled(folder: Path) -> Dataset:
    """A set with no more than ``QUERIES`` and ``DOCUMENTS``."""
    whole = load_dataset(folder, FILTERS.get(folder.name, "")).sampled(QUERIES)
    right = {one for query in whole.queries for one, gain in query.judged.items() if gain > 0}
    draw = random.Random(folder.name)
    others = [one for one in whole.documents if one.id not in right and not one.blank]
    if len(right) + len(others) > DOCUMENTS:
        others = draw.sample(others, max(0, DOCUMENTS - len(right)))
    kept = {one.id for one in others} | right
    documents = tuple(one for one in whole.documents if one.id in kept and not one.blank)
    return Dataset(whole.name, folder, documents, whole.queries, whole.filter_field)


def search_texts(documents: Sequence[Document]) -> list[SearchText]:
    """What each is found by, saved as a pattern or as an error solution."""
    if are_errors(documents):
        return [error_text(as_error_solution(one)) for one in documents]
    code = are_code(documents)
    return [pattern_text(as_pattern(one, code=code)) for one in documents]


def memory_texts(documents: Sequence[Document]) -> list[SearchText]:
    """What each is found by, saved as a memory."""
    kind = MemoryKind.CODE_SNIPPET if are_code(documents) else MemoryKind.NOTE
    return [memory_text(MemoryContent(one.text, kind)) for one in documents]


class Stored:
    """A set as a store would have it."""

    def __init__(self, data: Dataset, texts: Sequence[SearchText], embedder: CachedVectors) -> None:
        self.data, self._texts, self._embedder = data, texts, embedder
        documents = data.documents
        self._errors = (
            [read_error("", as_error_solution(one).error_message) for one in documents]
            if are_errors(documents)
            else []
        )

    async def searched(self, queries: Sequence[EvalQuery]) -> list[Searched]:
        """What a recall would look at for each, with what is right for it and without."""
        embedded = [_embedded(one) for one in self._texts]
        parts = [part for several in embedded for part in several]
        starts = np.cumsum([0, *(len(several) for several in embedded[:-1])])
        asked = await self._embedder.vectors("query", [one.text for one in queries])
        similar = asked @ (await self._embedder.vectors("document", parts)).T
        cosines = np.maximum.reduceat(similar, starts, axis=1)
        words = _bm25([one.text for one in queries], self._texts)
        found = []
        for query, meaning, lexical in zip(queries, cosines, words, strict=True):
            allowed, right = self._allowed(query), self._right(query)
            hits = [
                [
                    self._judged(query, place, float(meaning[place]), right=bool(right[place]))
                    for place in _best(meaning, lexical, among)
                    if not self._same_error(query, place)
                ]
                for among in (allowed, allowed & ~right)
            ]
            found.append(Searched(*hits))
        return found

    def _judged(self, query: EvalQuery, place: int, similarity: float, *, right: bool) -> Judged:
        text, kind = self._texts[place], query.groups[-1] if query.groups else ""
        return Judged(self.data.name, query.text, text, similarity, right, kind)

    def _same_error(self, query: EvalQuery, place: int) -> bool:
        """Whether it would be found by its signature, so that no probability is asked for."""
        if not self._errors:
            return False
        return same_errors(read_error("", query.text), [self._errors[place]])[0] is not None

    def _right(self, query: EvalQuery) -> NDArray[np.bool_]:
        return np.array([query.judged.get(one.id, 0) > 0 for one in self.data.documents])

    def _allowed(self, query: EvalQuery) -> NDArray[np.bool_]:
        """Of another set's query, which has no value to filter by, all."""
        field = self.data.filter_field if query.filter_value else ""
        return np.array(
            [
                one.id not in query.exclude
                and (not field or one.fields.get(field) == query.filter_value)
                for one in self.data.documents
            ]
        )


def _embedded(text: SearchText) -> list[str]:
    """The texts whose vectors it has: those of its passages, or its own."""
    if text.long:
        return [text.passage(*span) for span in passages_of(text.long).spans]
    other = text.spoken_code if text.code else text.solved
    return list(dict.fromkeys((text.meaning, other or text.meaning)))


def stored(folder: Path, embedder: CachedVectors) -> Stored:
    """A set, saved as what it is made for: as patterns, as error solutions, or as memories."""
    data = conversations() if folder.name == CONVERSATIONS else sampled(folder)
    texts = memory_texts if folder.name in MEMORIES else search_texts
    return Stored(data, texts(data.documents), embedder)


async def judged_pairs(
    name: str, pairs: Sequence[TaskPair], embedder: CachedVectors
) -> list[Judged]:
    """The pairs written by hand."""
    queries = await embedder.vectors("query", [one.query for one in pairs])
    stored = await embedder.vectors("document", [one.stored for one in pairs])
    cosines = (queries * stored).sum(axis=1)
    return [
        Judged(name, one.query, SearchText(one.stored), float(cosine), one.same, one.kind)
        for one, cosine in zip(pairs, cosines, strict=True)
    ]


def _best(
    cosines: NDArray[np.float32], words: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> Iterable[int]:
    """The nearest, then the best by words that are not among them."""
    found: dict[int, None] = {}
    for scores, most in ((cosines, NEAREST), (words, BY_WORDS)):
        order = np.argsort(-np.where(allowed, scores, -1.0), kind="stable")[:most]
        found |= dict.fromkeys(int(one) for one in order if allowed[one])
    return found


def _bm25(queries: Sequence[str], texts: Sequence[SearchText]) -> NDArray[np.float64]:
    """As the store weighs them: with the inverse document frequency."""
    documents = [document_vector(one.whole) for one in texts]
    counts: dict[int, int] = {}
    for one in documents:
        for number in one.indices:
            counts[number] = counts.get(number, 0) + 1
    postings: dict[int, list[tuple[int, float]]] = {}
    for place, one in enumerate(documents):
        for number, weight in zip(one.indices, one.values, strict=True):
            postings.setdefault(number, []).append((place, weight))
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        vector = lexical_query(query).vector
        for number, weight in zip(vector.indices, vector.values, strict=True):
            if number in counts:
                count = counts[number]
                rare = np.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
                for place, value in postings[number]:
                    scores[row, place] += weight * value * rare
    return scores
