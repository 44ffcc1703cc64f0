"""What a clear deletes: the collections, and the conditions in each."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.ports import Equals
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.services.registry import Registry
from lot_grpc.services.resource_spec import RecordSet

_DONE_REQUESTS = RecordSet(REQUESTS, (Equals("done", True),))


class ClearExtent:
    """The records that are deleted with each kind."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def check_clearable(self, resource_kinds: Sequence[str]) -> None:
        """Refuse kinds that are only cleared with others. Raises RequestInvalidError."""
        wrong = []
        for place, kind in enumerate(resource_kinds):
            if owners := self._registry.resources[kind].cleared_with:
                names = " or ".join(owner.upper() for owner in owners)
                wrong.append(
                    Violation(
                        f"resource_kinds[{place}]",
                        "resource_kind.clearable",
                        f"{kind.upper()} cannot be cleared alone; clear {names} instead, "
                        "which includes it",
                    )
                )
        if wrong:
            raise RequestInvalidError(wrong)

    def parts_of(self, resource_kinds: Sequence[str]) -> list[RecordSet]:
        """All that goes with the kinds; none given: everything that the namespace holds.

        With some kinds the completed requests are dropped, since a repeat would be answered with
        records that no longer exist. Tombstones stay: they record what happened.
        """
        if not resource_kinds:
            names = (*sorted(self._registry.resource_collections), *self._registry.bookkeeping)
            return [RecordSet(name) for name in names]
        parts: dict[RecordSet, None] = {}
        for kind in resource_kinds:
            resource = self._registry.resources[kind]
            parts |= {RecordSet(one.name): None for one in resource.collections}
            parts |= dict.fromkeys(resource.cleared_along)
        return [*parts, _DONE_REQUESTS]

    def counted(self, resource_kinds: Sequence[str]) -> list[tuple[str, RecordSet]]:
        """The records to count for each kind that is deleted; no two sets overlap."""
        parts = self.parts_of(resource_kinds)
        return [
            (kind, part)
            for kind, resource in self._registry.resources.items()
            for part in parts
            if part.collection == resource.collection.name
        ]
