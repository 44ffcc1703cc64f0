"""Creates the files of a shard."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import qdrant_edge as edge

from lot_grpc.ports import CollectionSpec
from lot_grpc.storage import durable
from lot_grpc.storage.edge_schema import MAX_SIM, fields

NEVER_OPENED = "lot.never-opened"
"""Present in a shard until its first load is complete."""

NO_VECTOR = "_none"
"""Edge refuses a shard without vectors, so payload-only collections get an unused sparse one."""

_SPARSE_FULL_SCAN = 1_000
"""If fewer records than this meet the conditions, Edge scores each of them; otherwise it uses the
index. With Edge's default of 5,000, a search among 1,250 of 10,000 records takes three times as
long. At 100,000 records, both take about the same up to 5,000 matches."""


def create(folder: Path, spec: CollectionSpec, search_threads: int) -> None:
    """Build the shard elsewhere and move it into place, so that it is never half built.

    Its files list its indexes, and the first load builds them all at once; for an index added later
    Edge flushes the whole shard. A shard whose first load was interrupted is empty, and is rebuilt.
    """
    new = folder.with_name(f".new-{folder.name}")
    shutil.rmtree(new, ignore_errors=True)
    if folder.exists():
        folder.rename(new)
        shutil.rmtree(new)
    new.mkdir()
    edge.EdgeShard.create(str(new), _config(spec, search_threads)).close()
    indexed = {path: name for path, (name, _) in fields(spec).items()}
    for file in new.glob("segments/*/payload_index/config.json"):
        durable.write_text(file, json.dumps({"indexed_fields": indexed}))
    (new / NEVER_OPENED).touch()
    durable.rename(new, folder)  # before a record in it is acknowledged


def _config(spec: CollectionSpec, search_threads: int) -> edge.EdgeConfig:
    words = edge.EdgeSparseVectorParams(
        full_scan_threshold=_SPARSE_FULL_SCAN, modifier=edge.Modifier.Idf
    )
    sparse = dict.fromkeys(spec.sparse, words)
    if not spec.vector_names:
        sparse[NO_VECTOR] = edge.EdgeSparseVectorParams()
    return edge.EdgeConfig(
        vectors={
            name: edge.EdgeVectorParams(
                size,
                edge.Distance.Cosine,
                multivector_config=MAX_SIM if name in spec.multi else None,
                # Every record has the first vector. Missing ones take as much disk space as others.
                memory=edge.Memory.Cold if place else edge.Memory.Cached,
            )
            for place, (name, size) in enumerate({**spec.dense, **spec.multi}.items())
        },
        sparse_vectors=sparse,
        max_search_threads=search_threads,
    )
