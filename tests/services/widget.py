"""A kind of record that the service does not have: all that one needs is in this module."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.errors import LotError, NotFoundError
from lot_grpc.domain.ids import content_hash, etag_of, new_id, point_id
from lot_grpc.domain.search_text import SearchText
from lot_grpc.kernel.create import Creation
from lot_grpc.ports import EXPIRES_KEY, Equals, Index, Record
from lot_grpc.services.operations import Resources
from lot_grpc.services.records.collections import SORT_KEY, SPARSE_VECTOR, TEXT_VECTOR
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    Bound,
    ExportRule,
    ResourceCollection,
    ResourceSpec,
    RetentionRule,
    WatchRule,
)
from lot_grpc.services.runtime import Runtime

WIDGETS = "widgets"
MOST = 5
"""So many widgets every policy keeps here."""


class WidgetNotFoundError(NotFoundError):
    reason = "WIDGET_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Widget:
    namespace: str
    widget_id: str
    name: str
    revision: int = 1
    create_time: int = 0
    expire_time: int | None = None

    @property
    def etag(self) -> str:
        return etag_of(self.namespace, self.revision)


def widget_point(namespace: str, widget_id: str) -> str:
    return point_id(namespace, "widget", widget_id)


def widget_record(widget: Widget, sort_key: int, vectors: Any) -> Record:
    payload: dict[str, Any] = {
        "widget_id": widget.widget_id,
        "name": widget.name,
        "revision": widget.revision,
        "create_time": widget.create_time,
        SORT_KEY: sort_key,
    }
    if widget.expire_time is not None:
        payload[EXPIRES_KEY] = widget.expire_time
    point = widget_point(widget.namespace, widget.widget_id)
    return Record(point, widget.namespace, payload, vectors)


def widget_from_record(record: Record) -> Widget:
    payload = record.payload
    return Widget(
        record.namespace,
        payload["widget_id"],
        payload["name"],
        payload["revision"],
        payload["create_time"],
        payload.get(EXPIRES_KEY),
    )


WIDGET = ResourceSpec(
    kind="widget",
    id_key="widget_id",
    point=widget_point,
    read=widget_from_record,
    missing=WidgetNotFoundError,
    method="CreateWidget",
    seen_keys=("widget_id", "revision", SORT_KEY),
    collection=ResourceCollection(
        name=WIDGETS,
        description="A widget.",
        indexes={**COMMON_INDEXES, **CHANGE_INDEXES, "name": Index.KEYWORD},
        dense=(TEXT_VECTOR,),
        sparse=(SPARSE_VECTOR,),
        text_of=lambda record: SearchText(record.payload["name"]),
        expires=True,
        export=ExportRule(),
    ),
    watch=WatchRule(),
    retention=RetentionRule(
        bound=lambda policy: Bound(MOST, None),
        touched=(),
        age_keys=("create_time",),
    ),
)


class Widgets(Resources[Widget, None]):
    """Create and edit; to read, list and delete is inherited."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(WIDGET, runtime)
        self._runtime = runtime

    async def create(self, namespace: str, name: str, request_id: str = "", **named: Any) -> Widget:
        indexed = await self._runtime.indexer.vectors_of(SearchText(name))

        def make(widget_id: str) -> Record:
            now = self._runtime.time.now()
            widget = Widget(namespace, widget_id, name, create_time=now, **named)
            return widget_record(widget, self._runtime.time.sort_key(), indexed.vectors)

        def require_same(stored: Record) -> None:
            if stored.payload["name"] != name:
                raise LotError("another widget has this id")

        creation = Creation(
            namespace=namespace,
            id=new_id("w"),
            request_id=request_id,
            content_hash=content_hash([name]),
        )
        record, _ = await self._runtime.create.insert(WIDGET.creation, creation, make, require_same)
        return widget_from_record(record)

    async def rename(self, namespace: str, widget_id: str, name: str, etag: str) -> Widget:
        record = await self.read_record(namespace, widget_id, etag=etag)
        widget = widget_from_record(record)
        edited = replace(widget, name=name, revision=widget.revision + 1)
        indexed = await self._runtime.indexer.vectors_of(SearchText(name))
        changed = widget_record(edited, record.payload[SORT_KEY], indexed.vectors)
        await self._store.replace(WIDGETS, changed, [Equals("revision", widget.revision)])
        return edited
