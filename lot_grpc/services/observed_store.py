"""The outermost view of an adapter, if it is watched: times and traces its operations."""

from __future__ import annotations

import time
from typing import Any

from lot_grpc.domain.errors import LotError
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.telemetry.metrics import STORE_DURATION, STORE_ERRORS
from lot_grpc.telemetry.spans import SpanKind, span


def _observed(operation: str) -> Any:
    forward = getattr(ForwardingStore, operation)
    attributes = {"db.system.name": "qdrant", "db.operation.name": operation}

    async def observed(self: ForwardingStore, collection: str, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        try:
            with span(f"{operation} {collection}", attributes, SpanKind.CLIENT) as made:
                if made is not None:
                    made.attributes["db.collection.name"] = collection
                return await forward(self, collection, *args, **kwargs)
        except LotError as error:
            STORE_ERRORS.add(operation, error.reason)
            raise
        finally:
            STORE_DURATION.observe(time.perf_counter() - begun, operation)

    return observed


class ObservedStore(ForwardingStore):
    """A store whose operations are counted, timed and traced."""

    insert = _observed("insert")
    put = _observed("put")
    replace = _observed("replace")
    update = _observed("update")
    update_many = _observed("update_many")
    set_vectors = _observed("set_vectors")
    delete = _observed("delete")
    get = _observed("get")
    scroll = _observed("scroll")
    search = _observed("search")
    count = _observed("count")
    facet = _observed("facet")
    expired = _observed("expired")
    delete_expired = _observed("delete_expired")
