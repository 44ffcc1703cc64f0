"""Records for the contract tests."""

from __future__ import annotations

from typing import Any

from lot_grpc.ports import Record, VectorStore
from tests.contract.generated import records, uid

ALL = 10_000


def thing(name: object, namespace: str = "a", **payload: Any) -> Record:
    return Record(uid(name), namespace, payload, {"text": [1.0] + [0.0] * 7})


def entry(name: object, namespace: str = "a", **payload: Any) -> Record:
    return Record(uid(name), namespace, payload)


async def fill(*stores: VectorStore, seed: int = 1) -> list[Record]:
    made = records(seed)
    for store in stores:
        await store.put("things", made)
    return made


async def payload_of(store: VectorStore, name: object, collection: str = "things") -> Any:
    found = await store.get(collection, "a", [uid(name)])
    return found[uid(name)].payload if found else None
