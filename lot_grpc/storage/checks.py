"""Argument checks that all stores share, made before anything is touched.

They catch programming errors, not a caller's mistakes, hence ``ValueError``. Only an unknown
collection can have an outside cause (it was dropped).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import (
    NAMESPACE_KEY,
    CollectionSpec,
    Index,
    MultiVector,
    Order,
    Record,
    Rescore,
    SearchQuery,
    SparseVector,
    Vector,
    Where,
)

_T = TypeVar("_T")

_FACETED = (Index.KEYWORD, Index.FACETED_INTEGER, Index.BOOL)


def known(collections: Mapping[str, _T], name: str) -> _T:
    """The entry of a collection that ``ensure_collections`` has set up."""
    try:
        return collections[name]
    except KeyError:
        raise StoreUnavailableError(
            f"collection {name!r} is not set up in this store; "
            "restart the service, which creates missing collections",
            collection=name,
        ) from None


def check_records(spec: CollectionSpec, records: Sequence[Record]) -> None:
    """Raise ``ValueError`` for a vector that does not fit the collection."""
    for record in records:
        for name, vector in record.vectors.items():
            _check_vector(spec, name, vector)


def _check_query(spec: CollectionSpec, query: SearchQuery) -> None:
    if query.using in spec.multi and not isinstance(query.vector, SparseVector | MultiVector):
        _check_size(spec, query.using, query.vector, spec.multi[query.using])
        return
    _check_vector(spec, query.using, query.vector)
    if isinstance(query.vector, MultiVector):
        raise ValueError(f"a query has one vector of {query.using!r}, not several")  # noqa: TRY004 - as its neighbours


def check_search(
    spec: CollectionSpec, queries: Sequence[SearchQuery], rescore: Rescore | None
) -> None:
    """Raise ``ValueError`` for a search that the collection cannot answer."""
    fallbacks = [query.fallback.query for query in queries if query.fallback is not None]
    for query in (*queries, *fallbacks):
        _check_query(spec, query)
    if any(query.fallback is not None for query in fallbacks):
        raise ValueError("a fallback must not have a fallback")
    if rescore is None:
        return
    for name in rescore.using:
        _check_query(spec, SearchQuery(name, rescore.vector, limit=1))
    if any(query.where != queries[0].where for query in (*queries, *fallbacks)):
        raise ValueError("the queries of a rescored search must have the same conditions")


def check_facet(spec: CollectionSpec, key: str) -> None:
    """Raise ``ValueError`` for a key without an index that supports facets."""
    if key != NAMESPACE_KEY and spec.indexes.get(key) not in _FACETED:
        raise ValueError(f"collection {spec.name!r} has no index for facets on {key!r}")


def check_scroll(order: Order | None, after: str) -> None:
    """Raise ``ValueError`` for an id to continue after in another order than that of ids."""
    if order is not None and after:
        raise ValueError("a scroll with an order continues by a condition on its key")


def those_after(found: list[Record], after: str, limit: int) -> list[Record]:
    """Up to ``limit`` of the records that a scroll from ``after`` on found."""
    return [record for record in found if record.id != after][:limit] if after else found


def check_delete(namespace: str | None, where: Where) -> None:
    """Raise ``ValueError`` rather than empty a whole collection by accident."""
    if namespace is None and not where:
        raise ValueError("a delete over all namespaces needs a condition")


def check_dimensions(name: str, vector: str, stored: int, expected: int) -> str:
    """An error message if the stored vectors have a different size; empty if they agree."""
    if stored == expected:
        return ""
    return (
        f"collection {name!r} has {stored}-dimensional {vector!r} vectors, but the configured "
        f"model makes {expected}; configure the model the data was made with, "
        "or run `lot-grpc reindex`"
    )


def require_same(folder: str, inode: int) -> None:
    """Raise if a folder was deleted or replaced after it was opened: a write would be lost."""
    try:
        if os.stat(folder).st_ino == inode:  # noqa: PTH116 - runs before each write; twice as fast
            return
        what = "was replaced"
    except OSError as error:
        what = f"is gone ({error.strerror})"
    raise StoreUnavailableError(
        f"the folder {folder} {what} while in use, so writes are rejected; move the original "
        "folder back, or stop the server, restore the data folder from a backup or an export, and "
        "restart",
        path=folder,
    )


def distinct(records: Sequence[Record]) -> dict[str, Record]:
    """Records by id; of several with the same id, the first."""
    by_id: dict[str, Record] = {}
    for record in records:
        by_id.setdefault(record.id, record)
    return by_id


def _check_vector(spec: CollectionSpec, name: str, vector: Vector) -> None:
    if isinstance(vector, SparseVector):
        if name not in spec.sparse:
            raise ValueError(f"collection {spec.name!r} has no sparse vector {name!r}")
        if len(vector.indices) != len(vector.values):
            raise ValueError(f"sparse vector {name!r} has different numbers of indices and values")
        return
    if isinstance(vector, MultiVector):
        if name not in spec.multi:
            raise ValueError(f"collection {spec.name!r} has no multi-vector {name!r}")
        if not vector.vectors:
            raise ValueError(f"multi-vector {name!r} is empty")
        for one in vector.vectors:
            _check_size(spec, name, one, spec.multi[name])
        return
    size = spec.dense.get(name)
    if size is None:
        raise ValueError(f"collection {spec.name!r} has no dense vector {name!r}")
    _check_size(spec, name, vector, size)


def _check_size(spec: CollectionSpec, name: str, vector: Sequence[float], size: int) -> None:
    if len(vector) != size:
        raise ValueError(
            f"vector {name!r} has {len(vector)} dimensions, {spec.name!r} needs {size}"
        )
