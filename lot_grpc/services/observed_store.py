"""An adapter that is watched: times and traces its operations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from lot_grpc.domain.errors import LotError
from lot_grpc.ports import VectorStore
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.telemetry.metrics import STORE_DURATION, STORE_ERRORS
from lot_grpc.telemetry.spans import SpanKind, current, span

_OPERATIONS: Final = (
    *("insert", "put", "replace", "update", "update_many", "set_vectors", "delete", "get"),
    *("scroll", "search", "count", "facet", "expired", "delete_expired"),
)


class ObservedStore(ForwardingStore):
    """A store whose operations on records are counted, timed and traced."""

    def __init__(self, inner: VectorStore) -> None:
        super().__init__(inner)
        for name in _OPERATIONS:
            # On the instance: a class would cost a further call for each operation.
            setattr(self, name, _observed(name, getattr(inner, name)))


def _observed(operation: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    duration = STORE_DURATION.of(operation)
    attributes = {"db.system.name": "qdrant", "db.operation.name": operation}

    async def traced(collection: str, *args: Any, **kwargs: Any) -> Any:
        where = {**attributes, "db.collection.name": collection}
        with span(f"{operation} {collection}", where, SpanKind.CLIENT):
            return await forward(collection, *args, **kwargs)

    async def observed(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        try:
            if current() is not None:
                return await traced(*args, **kwargs)
            return await forward(*args, **kwargs)
        except LotError as error:
            STORE_ERRORS.add(operation, error.reason)
            raise
        finally:
            duration.observe(time.perf_counter() - begun)

    return observed
