"""Small sets, written as a user would, and a searcher that answers from a table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.measuring import Measured
from lot_grpc.evaluation.metrics import METRICS
from lot_grpc.evaluation.searcher import Found, Indexed, Progress

DOCUMENTS = [
    {"id": "how/to bake", "text": "Bake bread: knead flour, water and yeast, let it rise, bake."},
    {"id": "bicycle", "text": "Repair a flat bicycle tyre: find the hole, glue a patch on it."},
    {"id": "3", "text": "def add(a, b):\n    return a + b", "language": "python"},
    {"id": "tax", "text": "File the yearly tax return before the end of May."},
]
QUERIES = [
    {"id": "q1", "text": "how do I make a loaf of bread", "kind": "said", "source": "kitchen"},
    {"id": "q2", "text": "my bicycle has a puncture", "kind": "said", "source": "street"},
    {"id": "q3", "text": "when are taxes due", "kind": "asked"},
]
QRELS = [("q1", "how/to bake", 2), ("q2", "bicycle", 1), ("q3", "tax", 1)]


def lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def rows(records: Sequence[Sequence[Any]], header: str = "query-id\tcorpus-id\tscore\n") -> str:
    return header + "".join("\t".join(map(str, record)) + "\n" for record in records)


def write_set(
    folder: Path,
    *,
    documents: Sequence[Mapping[str, Any]] = DOCUMENTS,
    queries: Sequence[Mapping[str, Any]] = QUERIES,
    qrels: Sequence[Sequence[Any]] = QRELS,
    zipped: bool = False,
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "corpus.jsonl": lines(documents),
        "queries.jsonl": lines(queries),
        "qrels.tsv": rows(qrels),
    }
    for name, text in texts.items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


def a_dataset(queries: Sequence[EvalQuery], name: str = "made") -> Dataset:
    ids = sorted({key for query in queries for key in query.judged})
    return Dataset(name, Path(name), tuple(Document(key, key) for key in ids), tuple(queries))


def measured(values: Mapping[str, Sequence[float]], name: str = "made") -> Measured:
    """Every metric of the n-th query by a leg is the n-th value."""
    count = len(next(iter(values.values())))
    queries = [EvalQuery(f"q{n}", "?", {"a": 1.0}) for n in range(count)]
    return Measured(
        a_dataset(queries, name),
        {
            leg: {
                query.id: dict.fromkeys(METRICS, value)
                for query, value in zip(queries, column, strict=True)
            }
            for leg, column in values.items()
        },
        {leg: [1.0, 2.0, 30.0] for leg in values},
    )


class TableSearcher:
    """Answers from a table, query id → leg → documents, and remembers what it was asked."""

    def __init__(self, answers: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        self._answers = answers
        self.indexed: list[str] = []
        self.requested: list[tuple[str, str, int, bool]] = []

    async def index(self, documents: Sequence[Document], progress: Progress) -> Indexed:
        self.indexed += [document.id for document in documents]
        return Indexed(truncated=1)

    async def search(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> Found:
        self.requested.append((query.id, leg, limit, rerank))
        return Found(self._answers[query.id]["rerank" if rerank else leg][:limit], truncated=True)
