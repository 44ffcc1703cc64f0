"""Adapts each peer to the same three calls. Imported in the environment of the peers only.

All store the same items under the same ids, use the same vectors, filter by the same three fields
and return whole items. ``tidy``, which is not timed, does the maintenance that a store's guide
advises. Each is configured as its guide says for persistent data. Where there is a choice, a write
survives the death of the process but is not flushed to the disk, as in lot-grpc by default.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tests.bench.peers.model import Model

DIMENSIONS = 384
_FIELDS = ("item_id", "text", "tenant", "language", "success_rate", "data")


Item: TypeAlias = dict[str, Any]
"""``text`` is embedded, ``data`` is the rest as JSON; the other fields are filtered by."""
Where: TypeAlias = dict[str, Any]
"""A filter: this tenant and language, and at least this success rate."""


class Peer(ABC):
    """A peer that has its store in a folder."""

    package: ClassVar[str]
    durable: ClassVar[str]
    """What a stored item survives: "power loss" if the call flushes it to the disk (verified with
    strace), "SIGKILL" if it is handed to the operating system (tested), or "nothing"."""
    threads: ClassVar[bool] = True
    """Whether several threads may use it at once."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.folder = folder
        self.model = model
        self.open()

    @property
    def version(self) -> str:
        return version(self.package)

    @abstractmethod
    def open(self) -> None:
        """Create the store."""

    @abstractmethod
    def store(self, items: Sequence[Item]) -> None:
        """Embed and store items."""

    @abstractmethod
    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        """The ids of the nearest items, after reading these in full."""

    def tidy(self) -> None:  # noqa: B027 - most have nothing to do
        """The regular maintenance that its guide advises."""

    def _vectors(self, items: Sequence[Item]) -> list[list[float]]:
        return [self.model.document(item["text"]) for item in items]


class Edge(Peer):
    """The bare limit: the engine that lot-grpc embeds, used directly."""

    package = "qdrant-edge-py"
    durable = "SIGKILL"

    def open(self) -> None:
        import qdrant_edge as edge

        self._edge = edge
        vectors = {"": edge.EdgeVectorParams(DIMENSIONS, edge.Distance.Cosine)}
        self.folder.mkdir()
        self._shard = edge.EdgeShard.create(str(self.folder), edge.EdgeConfig(vectors=vectors))
        schemas = edge.PayloadSchemaType
        for field, schema in (
            ("tenant", schemas.Keyword),
            ("language", schemas.Keyword),
            ("success_rate", schemas.Float),
        ):
            self._shard.update(edge.UpdateOperation.create_field_index(field, schema))

    def store(self, items: Sequence[Item]) -> None:
        points = [
            self._edge.Point(_uuid(item), vector, dict(item))
            for item, vector in zip(items, self._vectors(items), strict=True)
        ]
        self._shard.update(self._edge.UpdateOperation.upsert_points(points))

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        edge = self._edge
        narrowed = edge.Filter(
            must=[
                edge.FieldCondition("tenant", match=edge.MatchValue(where["tenant"])),
                edge.FieldCondition("language", match=edge.MatchValue(where["language"])),
                edge.FieldCondition(
                    "success_rate", range=edge.RangeFloat(gte=where["success_rate"])
                ),
            ]
        )
        nearest = edge.Query.Nearest(self.model.query(query))
        asked = edge.QueryRequest(
            limit, query=nearest, filter=narrowed, with_payload=True, with_vector=False
        )
        return [hit.payload["item_id"] for hit in self._shard.query(asked) if hit.payload]


class Chroma(Peer):
    package = "chromadb"
    durable = "power loss"

    def open(self) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(self.folder), settings)
        self._items = client.create_collection(
            "items", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def store(self, items: Sequence[Item]) -> None:
        self._items.add(
            ids=[item["item_id"] for item in items],
            embeddings=self._vectors(items),
            documents=[item["text"] for item in items],
            metadatas=[{field: item[field] for field in _FIELDS[2:]} for item in items],
        )

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        conditions = [
            {"tenant": where["tenant"]},
            {"language": where["language"]},
            {"success_rate": {"$gte": where["success_rate"]}},
        ]
        found = self._items.query(
            query_embeddings=[self.model.query(query)], n_results=limit, where={"$and": conditions}
        )
        ids: list[str] = found["ids"][0]
        return ids


class Lance(Peer):
    package = "lancedb"
    durable = "SIGKILL"

    def open(self) -> None:
        import lancedb
        import pyarrow as pa

        columns = {name: pa.float32() if name == "success_rate" else pa.utf8() for name in _FIELDS}
        columns["vector"] = pa.list_(pa.float32(), DIMENSIONS)
        self._table = lancedb.connect(str(self.folder)).create_table(
            "items", schema=pa.schema(columns)
        )

    def store(self, items: Sequence[Item]) -> None:
        vectors = self._vectors(items)
        self._table.add([{**item, "vector": v} for item, v in zip(items, vectors, strict=True)])

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        condition = (
            f"tenant = '{where['tenant']}' AND language = '{where['language']}' "
            f"AND success_rate >= {where['success_rate']}"
        )
        search = self._table.search(self.model.query(query)).distance_type("cosine")
        found = search.where(condition, prefilter=True).limit(limit).select(list(_FIELDS))
        return [row["item_id"] for row in found.to_list()]

    def tidy(self) -> None:
        self._table.optimize()


class SqliteVec(Peer):
    package = "sqlite-vec"
    durable = "SIGKILL"  # with synchronous=NORMAL

    def open(self) -> None:
        self._local = threading.local()
        self._connection().execute(
            "CREATE VIRTUAL TABLE items USING vec0(item_id TEXT PRIMARY KEY, "
            f"embedding FLOAT[{DIMENSIONS}] DISTANCE_METRIC=cosine, tenant TEXT PARTITION KEY, "
            "language TEXT, success_rate FLOAT, +text TEXT, +data TEXT)"
        )

    def store(self, items: Sequence[Item]) -> None:
        rows = [
            (*(item[field] for field in _FIELDS), _bytes(vector))
            for item, vector in zip(items, self._vectors(items), strict=True)
        ]
        with self._connection() as connection:
            connection.executemany(
                f"INSERT INTO items({', '.join(_FIELDS)}, embedding) VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        found = self._connection().execute(
            "SELECT item_id, text, data FROM items WHERE embedding MATCH ? AND k = ? "
            "AND tenant = ? AND language = ? AND success_rate >= ? ORDER BY distance",
            (
                _bytes(self.model.query(query)),
                limit,
                where["tenant"],
                where["language"],
                where["success_rate"],
            ),
        )
        return [row[0] for row in found]

    def _connection(self) -> sqlite3.Connection:
        """One for each thread, as SQLite advises."""
        import sqlite_vec

        if not hasattr(self._local, "connection"):
            connection = _sqlite().connect(f"{self.folder}.db", timeout=30)
            connection.enable_load_extension(True)
            sqlite_vec.load(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            self._local.connection = connection
        found: sqlite3.Connection = self._local.connection
        return found


class QdrantLocal(Peer):
    package = "qdrant-client"
    durable = "power loss"
    threads = False

    def open(self) -> None:
        from qdrant_client import QdrantClient, models

        self._client = QdrantClient(path=str(self.folder))
        self._models = models
        vectors = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        self._client.create_collection("items", vectors_config=vectors)

    def store(self, items: Sequence[Item]) -> None:
        points = [
            self._models.PointStruct(id=_uuid(item), vector=vector, payload=dict(item))
            for item, vector in zip(items, self._vectors(items), strict=True)
        ]
        self._client.upsert("items", points)

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        models = self._models
        narrowed = models.Filter(
            must=[
                models.FieldCondition(key="tenant", match=models.MatchValue(value=where["tenant"])),
                models.FieldCondition(
                    key="language", match=models.MatchValue(value=where["language"])
                ),
                models.FieldCondition(
                    key="success_rate", range=models.Range(gte=where["success_rate"])
                ),
            ]
        )
        found = self._client.query_points(
            "items", query=self.model.query(query), query_filter=narrowed, limit=limit
        )
        return [(hit.payload or {})["item_id"] for hit in found.points]


class Mem0(Peer):
    """Without a language model (``infer`` off), over its default store, Qdrant's local mode."""

    package = "mem0ai"
    durable = "power loss"
    threads = False

    def open(self) -> None:
        from mem0 import Memory

        unused = {"provider": "openai", "config": {"api_key": "none"}}
        kept = {"path": str(self.folder), "embedding_model_dims": DIMENSIONS, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": kept},
                "llm": unused,
                "embedder": unused,
                "history_db_path": f"{self.folder}-history.db",
            }
        )
        self._memory.embedding_model = self

    def embed(self, text: str, action: str = "add") -> list[float]:
        """The method of an embedding model that mem0 calls."""
        return self.model.query(text) if action == "search" else self.model.document(text)

    def store(self, items: Sequence[Item]) -> None:
        for item in items:
            self._memory.add(
                [{"role": "user", "content": item["text"]}],
                user_id=item["tenant"],
                metadata={
                    field: item[field] for field in _FIELDS if field not in ("text", "tenant")
                },
                infer=False,
            )

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        filters = {
            "user_id": where["tenant"],
            "language": where["language"],
            "success_rate": {"gte": where["success_rate"]},
        }
        found = self._memory.search(query, filters=filters, top_k=limit)
        return [hit["metadata"]["item_id"] for hit in found["results"]]


class LangGraph(Peer):
    """Its in-memory store, which is faster with numpy installed."""

    package = "langgraph"
    durable = "nothing"

    def open(self) -> None:
        from langchain_core.embeddings import Embeddings
        from langgraph.store.memory import InMemoryStore

        model = self.model

        class Embedder(Embeddings):  # type: ignore[misc] # not known here
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [model.document(text) for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return model.query(text)

        self._store = InMemoryStore(
            index={"dims": DIMENSIONS, "embed": Embedder(), "fields": ["text"]}
        )

    def store(self, items: Sequence[Item]) -> None:
        for item in items:
            self._store.put((item["tenant"],), item["item_id"], dict(item))

    def recall(self, query: str, where: Where, limit: int) -> list[str]:
        narrowed = {
            "language": where["language"],
            "success_rate": {"$gte": where["success_rate"]},
        }
        found = self._store.search((where["tenant"],), query=query, filter=narrowed, limit=limit)
        return [hit.key for hit in found]


PEERS: dict[str, type[Peer]] = {
    "bare limit": Edge,
    "sqlite-vec": SqliteVec,
    "LanceDB": Lance,
    "Chroma": Chroma,
    "LangGraph": LangGraph,
    "Qdrant local": QdrantLocal,
    "mem0": Mem0,
}


def _sqlite() -> Any:
    """A SQLite module that can load extensions; many builds of Python cannot."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    import pysqlite3

    return pysqlite3


def _uuid(item: Item) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, item["item_id"]))


def _bytes(vector: list[float]) -> bytes:
    import numpy as np

    return np.asarray(vector, np.float32).tobytes()
