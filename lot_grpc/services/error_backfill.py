"""Reads the errors of an older version anew, before anything is served.

A record names the version of the rules that made its signatures: those of another version would be
missed by every look-up, and nobody would see it; and an older version gave solutions no vector of
the error with its fix. Both follow from the messages, which are stored as they came: a process that
is killed does it again and comes to the same, and what is done already costs no embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lot_grpc.domain.error_solution import search_text
from lot_grpc.domain.error_text.signature import VERSION
from lot_grpc.ports import Embedder, Equals, Record, VectorStore
from lot_grpc.services.memories.error_reading import read_aside
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SOLVED_VECTOR, SORT_KEY
from lot_grpc.services.records.error_solutions import error_solution_from_record, signature_payload
from lot_grpc.services.scanning import scan
from lot_grpc.services.store_contract import ERRORS_READ, change_contract, contract_row

_BATCH = 32
_WHAT = "reading earlier errors anew"


async def needs_reading(store: VectorStore) -> bool:
    """Whether errors in an open store were read by other rules than those of this version."""
    return (await contract_row(store)).get(ERRORS_READ) != VERSION


async def read_errors_anew(
    store: VectorStore,
    embedder: Embedder,
    progress: Callable[[str, int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Do it; return how many solutions there were. Once ``stop`` says so it leaves the rest."""
    if not await needs_reading(store):
        return 0
    total, done = await store.count(ERROR_SOLUTIONS, None), 0
    batch: list[Record] = []
    async for record in scan(store, ERROR_SOLUTIONS, None, [], vectors=True):
        if stop():
            return done
        await _sign(store, record)
        batch.append(record)
        if len(batch) == _BATCH:
            await _give_vectors(store, embedder, batch)
            done += len(batch)
            batch.clear()
            if progress is not None:
                progress(_WHAT, min(done, total), total)
    await _give_vectors(store, embedder, batch)
    await store.flush()
    await change_contract(store, {ERRORS_READ: VERSION})
    return done + len(batch)


async def _sign(store: VectorStore, record: Record) -> None:
    if record.payload.get("signed_by") != VERSION:
        content = error_solution_from_record(record).content
        await read_aside(content.error_type, content.error_message)
        signed = signature_payload(content)
        same = [Equals(key, record.payload[key]) for key in (SORT_KEY, "revision")]
        await store.update(ERROR_SOLUTIONS, record.namespace, record.id, set=signed, when=same)


async def _give_vectors(store: VectorStore, embedder: Embedder, records: Sequence[Record]) -> None:
    """Give the vector of error and fix to those that lack it: versions without it edited none."""
    lacking = [record for record in records if SOLVED_VECTOR not in record.vectors]
    if not lacking:
        return
    texts = [search_text(error_solution_from_record(one).content).solved for one in lacking]
    embeddings = await embedder.embed_documents(texts)
    await store.set_vectors(
        ERROR_SOLUTIONS,
        [
            Record(record.id, record.namespace, {}, {SOLVED_VECTOR: embedding.vector})
            for record, embedding in zip(lacking, embeddings, strict=True)
        ],
    )
