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
from lot_grpc.domain.pattern import search_text as pattern_text
from lot_grpc.domain.search_text import SearchText
from lot_grpc.evaluation.as_error_solution import are_errors, as_error_solution
from lot_grpc.evaluation.as_pattern import are_code, as_pattern
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.lexical.bm25 import document_vector, lexical_query
from tests.calibration.pairs import TaskPair
from tests.calibration.vectors import CachedVectors

SETS = ("webarena", "tau_retail", "humanevalpack", "programs", "code_search")
"""Of tasks with right answers; of some a field narrows the search."""
ERRORS = "errors"
"""Of errors with the right solutions: no tasks, so they take no part in the fit."""
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


async def judged_hits(folder: Path, embedder: CachedVectors) -> list[Judged]:
    """The hits of a set."""
    data = sampled(folder)
    texts = search_texts(data.documents)
    queries = await embedder.vectors("query", [query.text for query in data.queries])
    cosines = queries @ (await embedder.vectors("document", [one.meaning for one in texts])).T
    other = [one.spoken_code if one.code else one.solved for one in texts]
    if any(other):
        second = queries @ (await embedder.vectors("document", other)).T
        cosines = np.maximum(cosines, second)
    words = _bm25([query.text for query in data.queries], texts)
    found = []
    for number, query in enumerate(data.queries):
        allowed = _allowed(query, data)
        for one in _best(cosines[number], words[number], allowed):
            right = query.judged.get(data.documents[one].id, 0) > 0
            similarity = float(cosines[number][one])
            found.append(Judged(data.name, query.text, texts[one], similarity, right))
    return found


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


def _allowed(query: EvalQuery, data: Dataset) -> NDArray[np.bool_]:
    return np.array(
        [
            one.id not in query.exclude
            and (not data.filter_field or one.fields.get(data.filter_field) == query.filter_value)
            for one in data.documents
        ]
    )


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
