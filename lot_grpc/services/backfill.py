"""Gives the records of an older version the vectors they lack, before anything is served.

Without it a store of an older version would answer by meaning alone, and nobody would see it. What
is done stands in the store's contract, so that a process that is killed goes on where it was; the
contract names the new terms only when all is done. Several processes may do it at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lot_grpc.domain.passages import is_short, passages_of
from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import TOKENIZER, document_vector
from lot_grpc.ports import (
    Condition,
    Embedder,
    IdIn,
    MultiVector,
    Not,
    Order,
    Range,
    Record,
    SparseVector,
    Vector,
    VectorStore,
)
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.recall.search_fields import SEARCHED_COLLECTIONS, texts_of
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    EPISODES,
    MEMORIES,
    PASSAGE_VECTORS,
    PATTERNS,
    SCHEMA_VERSION,
    SORT_KEY,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.store_contract import (
    BACKFILL,
    Progress,
    change_contract,
    check_terms,
    contract_row,
)

_BATCH = 512
_EMBEDDED_BATCH = 32
"""A batch ends with so many texts to embed: what a process that is killed has done for nothing."""

_WHAT = "bringing the store up to date"

_MORE_VECTORS: Final = {MEMORIES: 5, EPISODES: 6}
"""The schema version from which on memories have vectors of their code and passages, and episodes
of their summaries."""

_ANEW = "anew"
"""Key of the state: the collections that get those."""


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Everything below ``key`` is done, and at it ``ids``: keys may repeat."""

    key: int
    ids: tuple[str, ...] = ()

    @classmethod
    def after(cls, batch: Sequence[Record], before: _Cursor | None) -> _Cursor:
        key = batch[-1].payload[SORT_KEY]
        ids = [record.id for record in batch if record.payload[SORT_KEY] == key]
        earlier = before.ids if before is not None and before.key == key else ()
        return cls(key, (*earlier, *ids))

    @property
    def rest(self) -> list[Condition]:
        """What comes after it."""
        return [Range(SORT_KEY, gte=self.key), Not(IdIn(self.ids))]


async def needs_backfill(store: VectorStore) -> bool:
    """Whether records of an open store lack vectors, or have those of other terms."""
    return _behind(await contract_row(store))


async def bring_up_to_date(
    store: VectorStore,
    embedder: Embedder,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Do what there is to do; return how many records it were. The store is open.

    Once ``stop`` says so it returns with the rest left undone (``needs_backfill``).

    Raises:
        SchemaVersionMismatchError: A newer version made the store its own meanwhile.
    """
    row = await contract_row(store)
    check_terms(row)
    if row["schema_version"] < SCHEMA_VERSION:
        # First of all: from here on an older version must not write, since it would write records
        # without the vectors, behind the place where this one goes on.
        changed: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
        if lacking := _lacking(row):
            changed[BACKFILL] = _with_more(row.get(BACKFILL), lacking)
        await change_contract(store, changed)
        row = {**row, **changed}
    if not _behind(row):
        return 0
    return await _Backfill(store, embedder, row, progress).run(stop)


class _Backfill:
    """One run of it.

    Code is embedded for stores that had no terms: those had none of it either. What got further
    vectors since (``_MORE_VECTORS``) has all of them made anew.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        row: Mapping[str, Any],
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._embedder = CurrentModel(embedder)
        self._indexer = Indexer(self._embedder)
        self._embeds = row["embedding"]["tokenizer"] == ""
        state = row.get(BACKFILL) or {}
        self._terms = (
            row["embedding"]["tokenizer"] != TOKENIZER or state.get("to", TOKENIZER) != TOKENIZER
        )
        self._anew = tuple(_MORE_VECTORS) if self._embeds else tuple(state.get(_ANEW, ()))
        self._collections = tuple(SEARCHED_COLLECTIONS) if self._terms else self._anew
        self._progress = progress
        self._cursors = _cursors(row)
        self._written = self._done = self._total = 0

    async def run(self, stop: Callable[[], bool]) -> int:
        """All collections, and then the contract."""
        for collection in self._collections:
            count = await self._store.count(collection, None)
            self._total += count
            if cursor := self._cursors.get(collection):
                self._done += count - await self._store.count(collection, None, cursor.rest)
        self._tell()
        for collection in self._collections:
            while not stop() and await self._batch(collection):
                pass
        if not stop():
            await self._finish()
        return self._written

    async def _batch(self, collection: str) -> bool:
        """The next records of a collection; False when there are none."""
        cursor = self._cursors.get(collection)
        rest = cursor.rest if cursor else []
        found = await self._store.scroll(
            collection, None, rest, limit=_BATCH, order=Order(SORT_KEY)
        )
        if not found:
            return False
        records = await self._affordable(collection, found)
        self._written += await self._write(collection, records)
        self._cursors[collection] = _Cursor.after(records, cursor)
        await self._store.flush()  # else the cursor might outlive the vectors when power is lost
        state = _state(self._cursors, self._anew)
        await change_contract(self._store, {BACKFILL: state})
        self._done += len(records)
        self._tell()
        await asyncio.sleep(0)
        return True

    async def _affordable(self, collection: str, records: Sequence[Record]) -> Sequence[Record]:
        """The first of them, up to what is embedded at once."""
        embedded = 0
        for number, text in enumerate(await texts_of(collection, records), 1):
            embedded += self._embedded_of(collection, text)
            if embedded >= _EMBEDDED_BATCH:
                return records[:number]
        return records

    def _embedded_of(self, collection: str, text: SearchText) -> int:
        """How many texts of a record have to be embedded."""
        if collection not in self._anew:
            return int(self._embeds and bool(text.code))
        passages = 0 if is_short(text.long) else len(passages_of(text.long).spans)
        return passages if passages > 1 else 2 * bool(text.code or text.solved)

    async def _write(self, collection: str, records: Sequence[Record]) -> int:
        """Give them what they lack; how many lacked something."""
        texts = await _texts_by_id(collection, records)
        vectors = await self._vectors(collection, texts)
        lacking = [record for record in records if record.id in vectors]
        await self._set(collection, lacking, vectors)
        texts = {record.id: texts[record.id] for record in lacking}
        while not self._store.exclusive and (edited := await self._edited(collection, texts)):
            # Another process serves already, and what it wrote was overwritten just now.
            texts = await _texts_by_id(collection, edited)
            again = await self._all_vectors(collection, texts, edited=True)
            await self._set(collection, edited, again)
        return len(lacking)

    async def _set(
        self, collection: str, records: Sequence[Record], vectors: Mapping[str, dict[str, Vector]]
    ) -> None:
        given = [replace(one, payload={}, vectors=vectors[one.id]) for one in records]
        await self._store.set_vectors(collection, given)

    async def _edited(self, collection: str, texts: Mapping[str, SearchText]) -> list[Record]:
        """Those whose text is no longer the one that was read."""
        ids = IdIn(tuple(texts))
        found = await self._store.scroll(collection, None, [ids], limit=len(texts))
        now = await _texts_by_id(collection, found)
        return [one for one in found if now[one.id] != texts[one.id]]

    async def _vectors(
        self, collection: str, texts: Mapping[str, SearchText]
    ) -> dict[str, dict[str, Vector]]:
        """What is lacking, by id."""
        vectors: dict[str, dict[str, Vector]] = {}
        if self._terms:
            for record, text in texts.items():
                vectors[record] = {SPARSE_VECTOR: document_vector(text.whole)}
        coded = {record: text for record, text in texts.items() if text.code}
        if collection in self._anew:
            anew = {r: text for r, text in texts.items() if self._embedded_of(collection, text)}
            vectors |= await self._all_vectors(collection, anew)
        elif self._embeds and coded:
            spoken = [text.spoken_code for text in coded.values()]
            embeddings = await self._embedder.embed_documents(spoken)
            for record, embedding in zip(coded, embeddings, strict=True):
                vectors[record][CODE_VECTOR] = embedding.vector
        return vectors

    async def _all_vectors(
        self, collection: str, texts: Mapping[str, SearchText], *, edited: bool = False
    ) -> dict[str, dict[str, Vector]]:
        """All of them, by id.

        ``edited``: code and passages that were taken out may have left vectors; the text's then.
        """
        indexed = await self._indexer.vectors(list(texts.values()))
        vectors = {record: one.vectors for record, one in zip(texts, indexed, strict=True)}
        for one in vectors.values() if edited else ():
            text = one[TEXT_VECTOR]
            if collection in (PATTERNS, MEMORIES):
                one.setdefault(CODE_VECTOR, text)
            if collection == MEMORIES and not isinstance(text, MultiVector | SparseVector):
                one.setdefault(PASSAGE_VECTORS, MultiVector([text]))
        return vectors

    async def _finish(self) -> None:
        row = await contract_row(self._store)
        check_terms(row)
        await self._store.flush()
        embedding = {**row["embedding"], "tokenizer": TOKENIZER}
        await change_contract(self._store, {"embedding": embedding, BACKFILL: None})
        self._done = self._total
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None and self._total:
            self._progress(_WHAT, min(self._done, self._total), self._total)


def _behind(row: Mapping[str, Any]) -> bool:
    # An unfinished run to other terms leaves those of the contract in some of the records only.
    left = row.get(BACKFILL) is not None or bool(_lacking(row))
    return left or row["embedding"]["tokenizer"] != TOKENIZER


def _lacking(row: Mapping[str, Any]) -> list[str]:
    """The collections that a store of an older version gives further vectors."""
    return [name for name, since in _MORE_VECTORS.items() if row["schema_version"] < since]


def _cursors(row: Mapping[str, Any]) -> dict[str, _Cursor]:
    """How far an earlier run came, unless it was to other terms."""
    state = row.get(BACKFILL)
    if state is None or state["to"] != TOKENIZER:
        return {}
    return {
        name: _Cursor(cursor["key"], tuple(cursor["ids"]))
        for name, cursor in state["cursors"].items()
    }


def _with_more(state: Mapping[str, Any] | None, lacking: Sequence[str]) -> dict[str, Any]:
    """The state of a run that goes over these, whatever an older version did of them."""
    left = state or {"to": TOKENIZER, "cursors": {}}
    cursors = {name: cursor for name, cursor in left["cursors"].items() if name not in lacking}
    earlier = left.get(_ANEW, [MEMORIES] if left.get("memories") else [])
    anew = dict.fromkeys([*earlier, *lacking])
    return {"to": left["to"], "cursors": cursors, _ANEW: list(anew)}


def _state(cursors: Mapping[str, _Cursor], anew: Sequence[str]) -> dict[str, Any]:
    kept = {name: {"key": one.key, "ids": list(one.ids)} for name, one in cursors.items()}
    return {"to": TOKENIZER, "cursors": kept, _ANEW: list(anew)}


async def _texts_by_id(collection: str, records: Sequence[Record]) -> dict[str, SearchText]:
    texts = await texts_of(collection, records)
    return {record.id: text for record, text in zip(records, texts, strict=True)}
