"""The vectors and indexes of a shard: what a spec names, in the form of Edge's files and API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import qdrant_edge as edge
from qdrant_edge import UpdateOperation

from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import EXPIRES_KEY, NAMESPACE_KEY, CollectionSpec, Index
from lot_grpc.storage.checks import check_dimensions
from lot_grpc.storage.json_path import json_path

CONFIG_NAME = "edge_config.json"

MAX_SIM: Final = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
"""For a single query vector this is the cosine of the nearest one."""

_SCHEMA_TYPES: Final[Mapping[Index, tuple[Any, Any]]] = {
    Index.KEYWORD: ("keyword", edge.PayloadSchemaType.Keyword),
    Index.INTEGER: (
        {"type": "integer", "lookup": False, "range": True},
        edge.IntegerIndexParams(lookup=False, range=True),
    ),
    Index.FACETED_INTEGER: ("integer", edge.PayloadSchemaType.Integer),
    Index.FLOAT: ("float", edge.PayloadSchemaType.Float),
    Index.BOOL: ("bool", edge.PayloadSchemaType.Bool),
}
"""Index types as named in Edge's files, and in its API."""


def complete_schema(shard: edge.EdgeShard, folder: Path, spec: CollectionSpec) -> None:
    """Add the vectors and indexes that the spec names and the shard lacks."""
    add_vectors(shard, folder, spec)
    present = shard.info().payload_schema
    for path, (_, schema) in fields(spec).items():
        if path not in present:
            shard.update(UpdateOperation.create_field_index(path, schema))


def fields(spec: CollectionSpec) -> dict[str, tuple[Any, Any]]:
    """The indexes by path, each in the form of Edge's files and of its API."""
    tenant = ({"type": "keyword", "is_tenant": True}, edge.KeywordIndexParams(is_tenant=True))
    expires = _SCHEMA_TYPES[Index.INTEGER]
    return {
        NAMESPACE_KEY: tenant,
        EXPIRES_KEY: expires,
        **{json_path(key): _SCHEMA_TYPES[kind] for key, kind in spec.indexes.items()},
    }


def vectors_in(folder: Path) -> tuple[dict[str, int], set[str]]:
    """Dense sizes and sparse names, read from the shard's own file; Edge has no call for them."""
    config = json.loads((folder / CONFIG_NAME).read_text())
    dense = {name: int(params["size"]) for name, params in config.get("vectors", {}).items()}
    return dense, set(config.get("sparse_vectors", {}))


def add_vectors(shard: edge.EdgeShard, folder: Path, spec: CollectionSpec) -> None:
    """Add the vectors that the spec names and the shard lacks.

    Raises:
        StartupError: one is there with other dimensions.
    """
    dense, sparse = vectors_in(folder)
    for name, size in {**spec.dense, **spec.multi}.items():
        if name not in dense:
            several = MAX_SIM if name in spec.multi else None
            shard.update(
                UpdateOperation.create_dense_vector(name, size, edge.Distance.Cosine, several)
            )
        elif problem := check_dimensions(spec.name, name, dense[name], size):
            raise StartupError(problem, collection=spec.name)
    for name in spec.sparse:
        if name not in sparse:
            shard.update(UpdateOperation.create_sparse_vector(name, edge.Modifier.Idf))
