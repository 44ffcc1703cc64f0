"""The inputs of all stores: the same items, queries and vectors, and a filled store for lot-grpc.

Items are the patterns of ``tests.bench.data`` with their histories. Every fifth item belongs to
another tenant. Peers embed the items and queries of timed calls themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lot_grpc.clock import SystemClock
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, search_text
from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.embedding.model_files import locate
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import pattern_record
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import open_store
from lot_grpc.storage.edge import EdgeStore
from tests.bench import data, stores

FIRST = 1_000_000
"""Number of the first item that is stored, and of the first query, in timed calls."""
EVAL = "eval"
"""The tenant of the data set for retrieval."""
_CHECKED = 20
_OTHERS = "other"
_CHUNK = 500


class Inputs:
    """What is needed later of the written inputs."""

    def __init__(self, items: list[dict[str, Any]], vectors: NDArray[np.float32]) -> None:
        self.checks = [_query(FIRST + 500_000 + number) for number in range(_CHECKED)]
        self._items = items
        self._vectors = vectors
        self._query_vectors: list[list[float]] = []

    async def embed_checks(self, embedder: FastembedEmbedder) -> None:
        self._query_vectors = [
            (await embedder.embed_query(query)).vector for query, _ in self.checks
        ]

    def agreement(self, found: Sequence[Sequence[str]]) -> float:
        """The share of the results of an exact search that the answers to ``checks`` contain."""
        shares = []
        for (_, where), vector, ids in zip(self.checks, self._query_vectors, found, strict=True):
            places = [
                place
                for place, item in enumerate(self._items)
                if item["tenant"] == where["tenant"]
                and item["language"] == where["language"]
                and item["success_rate"] >= where["success_rate"]
            ]
            scores = self._vectors[places] @ np.asarray(vector, np.float32)
            best = {self._items[places[place]]["item_id"] for place in np.argsort(-scores)[:5]}
            shares.append(len(best.intersection(ids)) / len(best))
        return sum(shares) / len(shares)


async def write(folder: Path, count: int, measured: int, dataset: Dataset | None) -> Inputs:
    """Write the inputs of ``tests.bench.peers.worker`` to a folder, with our store in ``ours``.

    ``count`` items are in each store from the start; ``measured`` more are stored, and as many
    queries made, in timed calls.
    """
    card = card_of(DEFAULT_MODEL)
    files = locate(card)
    model = {"file": str(files.folder / files.model_file), "prefix": card.query_prefix}
    _write(folder / "model.json", model)
    embedder = await open_fastembed()
    try:
        vectors = (await stores._vectors(embedder))[:count]
        records = [
            replace(record, namespace=_OTHERS) if number % 5 == 0 else record
            for number, record in enumerate(data.records(vectors.tolist()))
        ]
        items = [_item(record, number) for number, record in enumerate(records)]
        _write(folder / "items.json", items)
        _known(folder / "items", [("document", item["text"]) for item in items], vectors)
        _write(folder / "new.json", [_new(FIRST + number) for number in range(measured)])
        _write(folder / "queries.json", [_query(FIRST + number) for number in range(measured)])
        inputs = Inputs(items, vectors)
        await inputs.embed_checks(embedder)
        if dataset:
            await _write_set(folder, dataset, embedder)
        store = EdgeStore(folder / "ours", SystemClock())
        try:
            await open_store(store, REGISTRY, embedder.contract)
            for start in range(0, count, _CHUNK):
                await store.put(PATTERNS, records[start : start + _CHUNK])
        finally:
            await store.close()
    finally:
        await embedder.close()
    return inputs


def text_of(title: str, text: str) -> str:
    """A document as one text; the title is left out if the text begins with it."""
    return text if text.startswith(title) else f"{title}\n{text}"


async def _write_set(folder: Path, dataset: Dataset, embedder: FastembedEmbedder) -> None:
    items: list[dict[str, Any]] = [
        {
            "item_id": document.id,
            "text": text_of(document.title, document.text),
            "tenant": EVAL,
            "language": "",
            "success_rate": 1.0,
            "data": "",
        }
        for document in dataset.documents
        if not document.blank
    ]
    texts = [item["text"] for item in items]
    vectors = [one.vector for one in await embedder.embed_documents(texts)]
    queries = [query.text for query in dataset.answerable]
    vectors += [(await embedder.embed_query(query)).vector for query in queries]
    roles = [("document", text) for text in texts] + [("query", query) for query in queries]
    _write(folder / f"{EVAL}.json", items)
    _known(folder / EVAL, roles, np.asarray(vectors, np.float32))


def _item(record: Record, number: int) -> dict[str, Any]:
    payload = record.payload
    content = data.content(number)
    return {
        "item_id": payload["pattern_id"],
        "text": search_text(content).text,
        "tenant": record.namespace,
        "language": content.language,
        "success_rate": payload["success_rate"],
        "data": json.dumps(asdict(content)),
    }


def _new(number: int) -> dict[str, Any]:
    content, name = data.content(number), f"bench-{number}"
    pattern = Pattern(data.NAMESPACE, name, content, OutcomeStats(), 1, 1, 1)
    return _item(pattern_record(pattern, 1, {}), number)


def _query(number: int) -> tuple[str, dict[str, Any]]:
    """The query and filter of ``data.recall``."""
    where = {
        "tenant": data.NAMESPACE,
        "language": data.LANGUAGES[number % len(data.LANGUAGES)],
        "success_rate": data.MIN_SUCCESS_RATE,
    }
    return data.sentence(number), where


def _known(base: Path, roles: list[tuple[str, str]], vectors: NDArray[np.float32]) -> None:
    _write(base.with_name(f"{base.name}-known.json"), roles)
    np.save(base.with_name(f"{base.name}-known.npy"), vectors)


def _write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value))
