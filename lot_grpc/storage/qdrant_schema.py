"""Creates the collections of a Qdrant server, and extends them when a spec has grown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qdrant_client import AsyncQdrantClient, models

from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import EXPIRES_KEY, NAMESPACE_KEY, CollectionSpec, Index
from lot_grpc.storage.checks import check_dimensions
from lot_grpc.storage.json_path import json_path
from lot_grpc.storage.qdrant_stamp import WRITE_KEY

OLDEST_SERVER: Final = (1, 17)
"""The first version with insert-only upserts. An older one would ignore the mode and overwrite."""

_MAX_SIM: Final = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
"""For a single query vector this is the cosine of the nearest one."""

_SCHEMA_TYPES: Final = {
    Index.KEYWORD: models.PayloadSchemaType.KEYWORD,
    Index.INTEGER: models.PayloadSchemaType.INTEGER,
    Index.FACETED_INTEGER: models.PayloadSchemaType.INTEGER,
    Index.FLOAT: models.PayloadSchemaType.FLOAT,
    Index.BOOL: models.PayloadSchemaType.BOOL,
}


async def require_version(client: AsyncQdrantClient) -> None:
    """Raise ``StartupError`` for a server that lacks what compare-and-set needs."""
    version = (await client.info()).version
    parts = version.split(".")
    if (int(parts[0]), int(parts[1])) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise StartupError(
            f"the Qdrant server is {version}, but {oldest} or newer is required; upgrade it",
            version=version,
        )


async def ensure_collection(
    client: AsyncQdrantClient, name: str, spec: CollectionSpec, replicas: int, *, indexes: bool
) -> None:
    """Create the collection, or add the vectors and indexes that it lacks."""
    if not await client.collection_exists(name):
        try:
            await _create(client, name, spec, replicas)
        except Exception:
            # Another process may have created it first.
            if not await client.collection_exists(name):
                raise
    info = await client.get_collection(name)
    await _add_vectors(client, name, spec, info)
    if indexes:
        await _add_indexes(client, name, spec, info)


async def extend(client: AsyncQdrantClient, name: str, spec: CollectionSpec) -> None:
    """Add the vectors that the collection lacks."""
    await _add_vectors(client, name, spec, await client.get_collection(name))


async def drop_vectors(client: AsyncQdrantClient, name: str, vectors: Sequence[str]) -> None:
    """Drop these named vectors; unknown names are ignored."""
    params = (await client.get_collection(name)).config.params
    dense = params.vectors if isinstance(params.vectors, dict) else {}
    for vector in vectors:
        if vector in dense or vector in (params.sparse_vectors or {}):
            await client.delete_vector_name(name, vector)


async def _create(
    client: AsyncQdrantClient, name: str, spec: CollectionSpec, replicas: int
) -> None:
    await client.create_collection(
        name,
        vectors_config={
            vector: models.VectorParams(
                size=size,
                distance=models.Distance.COSINE,
                multivector_config=_MAX_SIM if vector in spec.multi else None,
            )
            for vector, size in {**spec.dense, **spec.multi}.items()
        },
        sparse_vectors_config={
            vector: models.SparseVectorParams(modifier=models.Modifier.IDF)
            for vector in spec.sparse
        },
        replication_factor=replicas,
        # A write is acknowledged once most replicas have it, so that a majority read sees it.
        write_consistency_factor=replicas // 2 + 1,
    )


async def _add_vectors(
    client: AsyncQdrantClient, name: str, spec: CollectionSpec, info: models.CollectionInfo
) -> None:
    stored = info.config.params.vectors
    dense = stored if isinstance(stored, dict) else {}
    sparse = info.config.params.sparse_vectors or {}
    for vector, size in {**spec.dense, **spec.multi}.items():
        if vector not in dense:
            params = models.DenseVectorConfig(
                size=size,
                distance=models.Distance.COSINE,
                multivector_config=_MAX_SIM if vector in spec.multi else None,
            )
            await client.create_vector_name(
                name, vector, models.DenseVectorNameConfig(dense=params)
            )
        elif problem := check_dimensions(spec.name, vector, dense[vector].size, size):
            raise StartupError(problem, collection=spec.name)
    for vector in spec.sparse:
        if vector not in sparse:
            idf = models.SparseVectorConfig(modifier=models.Modifier.IDF)
            await client.create_vector_name(name, vector, models.SparseVectorNameConfig(sparse=idf))


async def _add_indexes(
    client: AsyncQdrantClient, name: str, spec: CollectionSpec, info: models.CollectionInfo
) -> None:
    expected: dict[str, Any] = {
        NAMESPACE_KEY: models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD, is_tenant=True
        ),
        EXPIRES_KEY: models.PayloadSchemaType.INTEGER,
        # Servers in strict mode refuse filters on keys without an index.
        WRITE_KEY: models.UuidIndexParams(type=models.UuidIndexType.UUID, on_disk=True),
    }
    expected |= {json_path(key): _SCHEMA_TYPES[kind] for key, kind in spec.indexes.items()}
    for path, schema in expected.items():
        if path not in info.payload_schema:
            await client.create_payload_index(name, path, field_schema=schema, wait=True)
