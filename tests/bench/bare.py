"""The bare server, the denominator: bytes in and out, no validation, no ranking, no log.

The fastest known way to a vector, the same terms, both queries of a recall in one batch to Edge, on
the same store. An outcome is the minimum of three writes, in one call and without reads: its row in
the log, the counters of the pattern, and the stats of its query.

    python -m tests.bench.bare FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import grpc
import qdrant_edge as edge
import uvloop

from lot_grpc.lexical.bm25 import document_vector, lexical_query
from lot_grpc.ports import SparseVector
from tests.bench import data
from tests.bench.vectors import Vectors

POOL, LIMIT, MARGIN = 50, 5, 0.08


class Bare:
    def __init__(self, folder: str) -> None:
        self.patterns = edge.EdgeShard.load(f"{folder}/patterns")
        self.events = edge.EdgeShard.load(f"{folder}/events")
        self.outcomes = edge.EdgeShard.load(f"{folder}/outcomes")
        self.context_stats = edge.EdgeShard.load(f"{folder}/context_stats")
        self.vectors = Vectors()

    async def echo(self, request: bytes, _: Any) -> bytes:
        return request

    async def recall(self, request: bytes, _: Any) -> bytes:
        asked = json.loads(request)
        vector = await self.vectors.of_query(asked["query"])
        words = lexical_query(asked["query"]).vector
        dense, _ = self.search(vector, words, asked["language"], asked["min_success_rate"])
        return json.dumps([hit.payload for hit in self.fetch(dense)[:LIMIT]]).encode()

    def search(
        self, vector: list[float], words: SparseVector, language: str, min_success_rate: float
    ) -> list[Any]:
        where = edge.Filter(
            must=[
                edge.FieldCondition("namespace", match=edge.MatchValue(data.NAMESPACE)),
                edge.FieldCondition("language", match=edge.MatchValue(language)),
                edge.FieldCondition("success_rate", range=edge.RangeFloat(gte=min_success_rate)),
            ]
        )
        both = [
            edge.Query.Nearest(vector, using="text"),
            edge.Query.Nearest(_sparse(words), using="bm25"),
        ]
        queries = [
            edge.QueryRequest(POOL, query=one, filter=where, with_payload=False, with_vector=False)
            for one in both
        ]
        return self.patterns.query_batch(edge.QueryBatchRequest(queries))

    def fetch(self, found: list[Any]) -> list[Any]:
        """What ranking would look at: the first, and all that are nearly as good."""
        near = sum(hit.score >= found[0].score - MARGIN for hit in found)
        return self.patterns.retrieve([hit.id for hit in found[: max(near, LIMIT)]], True, False)

    async def save(self, request: bytes, _: Any) -> bytes:
        items = json.loads(request)
        self.upsert(items, await self.vectors.of_texts([item["text"] for item in items]))
        return request

    def upsert(self, items: list[Any], vectors: list[list[float]]) -> None:
        points = []
        for item, vector in zip(items, vectors, strict=True):
            named: Any = {"text": vector, "bm25": _sparse(document_vector(item["text"]))}
            points.append(edge.Point(item["id"], named, item["payload"]))
        self.patterns.update(edge.UpdateOperation.upsert_points(points))

    async def record_outcome(self, request: bytes, _: Any) -> bytes:
        asked = json.loads(request)
        row, pattern, stats = asked["outcome"], asked["pattern"], asked["context_stats"]
        vector: Any = {"query": await self.vectors.of_query(stats["payload"]["query"])}
        put, update = edge.UpdateOperation.upsert_points, edge.UpdateOperation.set_payload
        self.outcomes.update(put([edge.Point(row["id"], {}, row["payload"])]))
        self.patterns.update(update([pattern["id"]], pattern["payload"]))
        self.context_stats.update(put([edge.Point(stats["id"], vector, stats["payload"])]))
        return request

    async def store_events(self, request: bytes, _: Any) -> bytes:
        """Time the bare store with the events of streams, taken from memory, in batches.

        Once with a key for each field of an event, and once with as many other events in the packed
        form in which lot-grpc stores them.
        """
        asked = json.loads(request)
        size = asked["size"]
        found = {"seconds": 0.0, "packed_seconds": 0.0}
        for episode_id in asked["episode_ids"]:
            for key, packed in (("seconds", False), ("packed_seconds", True)):
                name = f"{episode_id}-{key}"
                rows = data.event_rows(name, asked["count"], packed=packed)
                started = time.perf_counter()
                for start in range(0, len(rows), size):
                    batch = rows[start : start + size]
                    points = [edge.Point(point, {}, payload) for point, payload in batch]
                    self.events.update(edge.UpdateOperation.upsert_points(points))
                found[key] += time.perf_counter() - started
        return json.dumps(found).encode()


def _sparse(words: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(words.indices), list(words.values))


async def _serve(folder: str) -> None:
    bare = Bare(folder)
    methods: dict[str, Any] = {"Echo": bare.echo, "Recall": bare.recall, "Save": bare.save}
    methods |= {"RecordOutcome": bare.record_outcome, "StoreEvents": bare.store_events}
    handlers: Any = {
        name: grpc.unary_unary_rpc_method_handler(call) for name, call in methods.items()
    }
    options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 16 * 2**20)]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Bare", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"bare is serving on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
