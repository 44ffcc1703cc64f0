"""A resource that another record names: its point, by which it is looked up, its kind and id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lot_grpc.domain.ids import ResourceRef
from lot_grpc.ports import Payload

RESOURCE: Final = "resource"
"""The point of the resource."""
RESOURCE_KIND: Final = "resource_kind"
_ID: Final = "resource_id"


def resource_payload(namespace: str, resource: ResourceRef) -> Payload:
    """The keys that name a resource."""
    return {
        RESOURCE: resource.point(namespace),
        RESOURCE_KIND: str(resource.kind),
        _ID: resource.id,
    }


def resource_of(payload: Mapping[str, Any]) -> ResourceRef:
    """The resource that a record names."""
    return ResourceRef(payload[RESOURCE_KIND], payload[_ID])
