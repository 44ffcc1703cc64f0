"""Records, conditions and queries made from a seed, for comparing two stores."""

from __future__ import annotations

import random
import uuid
from typing import Any

from lot_grpc.ports import (
    AllOf,
    AnyOf,
    CollectionSpec,
    Condition,
    Equals,
    IdIn,
    Index,
    Missing,
    MultiVector,
    Not,
    OneOf,
    Range,
    Record,
    SearchQuery,
    SparseVector,
)

THINGS = CollectionSpec(
    "things",
    dense={"text": 8, "code": 4},
    multi={"parts": 6},
    sparse=("bm25",),
    indexes={
        "kind": Index.KEYWORD,
        "tags": Index.KEYWORD,
        "n": Index.FACETED_INTEGER,
        "sizes": Index.FACETED_INTEGER,
        "rate": Index.FLOAT,
        "done": Index.BOOL,
        "sort_key": Index.INTEGER,
    },
)
LOG = CollectionSpec("log", indexes={"seq": Index.INTEGER, "owner": Index.KEYWORD})

KINDS = ("fix", "Fix", "refaktor", "größe", "修复", "a b", "k=v.w", "")
TAGS = ("x", "y", "team=core", "lang=c++", "émigré")
WORDS = range(30)


def uid(name: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(name)))


def unit_free_vector(rng: random.Random, size: int) -> list[float]:
    return [rng.uniform(-1, 1) for _ in range(size)]


def sparse_vector(rng: random.Random) -> SparseVector:
    terms = sorted(rng.sample(WORDS, rng.randint(1, 6)))
    return SparseVector(terms, [round(rng.uniform(0.1, 3), 3) for _ in terms])


def multi_vector(rng: random.Random) -> MultiVector:
    return MultiVector([unit_free_vector(rng, 6) for _ in range(rng.randint(1, 4))])


def record(rng: random.Random, i: int) -> Record:
    payload: dict[str, Any] = {
        "sort_key": 1_700_000_000_000_000 + i * 7 % 1009,
        "body": f"body {i}",
    }
    if rng.random() < 0.8:
        payload["kind"] = rng.choice(KINDS)
    if rng.random() < 0.8:
        payload["tags"] = rng.sample(TAGS, rng.randint(0, 3))
    if rng.random() < 0.8:
        payload["n"] = rng.choice([None, -3, 0, 1, 2, 5, 7, 1_700_000_000_000_123])
    if rng.random() < 0.6:
        payload["sizes"] = [rng.randint(0, 6) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.8:
        payload["rate"] = rng.choice([0, 1, 0.25, 0.5, 0.7, 1.5])
    if rng.random() < 0.7:
        payload["done"] = rng.random() < 0.5
    vectors: dict[str, Any] = {}
    if rng.random() < 0.9:
        vectors["text"] = unit_free_vector(rng, 8)
    if rng.random() < 0.4:
        vectors["code"] = unit_free_vector(rng, 4)
    if rng.random() < 0.8:
        vectors["bm25"] = sparse_vector(rng)
    if rng.random() < 0.4:
        vectors["parts"] = multi_vector(rng)
    return Record(uid(i), rng.choice(["a", "a", "b"]), payload, vectors)


def records(seed: int = 1, count: int = 240) -> list[Record]:
    rng = random.Random(seed)
    return [record(rng, i) for i in range(count)]


def condition(rng: random.Random, depth: int = 3) -> Condition:
    """One condition, nested up to ``depth``."""
    if depth and rng.random() < 0.45:
        inner = tuple(condition(rng, depth - 1) for _ in range(rng.randint(0, 3)))
        match rng.randrange(3):
            case 0:
                return Not(condition(rng, depth - 1))
            case 1:
                return AllOf(inner)
            case _:
                return OneOf(inner)
    return leaf(rng)


def leaf(rng: random.Random) -> Condition:
    number = rng.choice([-4, 0, 0.5, 1, 2.5, 3, 5, 7, 1_700_000_000_000_123])
    match rng.randrange(10):
        case 0:
            return Equals("kind", rng.choice([*KINDS, "none of them"]))
        case 1:
            return Equals("tags", rng.choice(TAGS))
        case 2:
            return Equals(rng.choice(["n", "sizes"]), rng.choice([0, 1, 2, 5, 7]))
        case 3:
            return Equals("done", rng.random() < 0.5)
        case 4:
            return AnyOf(rng.choice(["kind", "tags"]), tuple(rng.sample(KINDS + TAGS, 3)))
        case 5:
            return AnyOf("n", tuple(rng.sample([-3, 0, 1, 2, 5, 7], rng.randint(0, 3))))
        case 6:
            return Missing(rng.choice(["kind", "tags", "n", "sizes", "rate", "done", "nowhere"]))
        case 7:
            return IdIn(tuple(uid(rng.randrange(260)) for _ in range(rng.randint(0, 40))))
        case 8:
            side = rng.choice(["gte", "gt", "lte", "lt"])
            return Range(rng.choice(["n", "rate", "sizes", "sort_key"]), **{side: number})
        case _:
            return Range(rng.choice(["n", "rate", "sizes"]), gte=number - 2, lt=number + 1)


def query(rng: random.Random) -> SearchQuery:
    using = rng.choice(["text", "text", "code", "parts", "bm25"])
    sizes = {"text": 8, "code": 4, "parts": 6}
    vector = sparse_vector(rng) if using == "bm25" else unit_free_vector(rng, sizes[using])
    return SearchQuery(
        using=using,
        vector=vector,
        limit=rng.choice([1, 5, 20, 500]),
        where=tuple(condition(rng) for _ in range(rng.randint(0, 2))),
        min_score=rng.choice([None, None, 0.0, 0.2]) if using != "bm25" else None,
    )
