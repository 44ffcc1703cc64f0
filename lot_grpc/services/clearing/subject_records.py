"""Finds what belongs to a subject.

These are the records with its label, the records without labels whose id begins with it, and the
retrievals that showed one of them or whose query mentions it. What belongs to such a record, as its
events and outcomes, belongs to the subject too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.subject import SUBJECT_LABEL, mentions, named_for
from lot_grpc.ports import AnyOf, Equals, Record, VectorStore
from lot_grpc.services.records.collections import RETRIEVALS
from lot_grpc.services.records.fields import label_pairs
from lot_grpc.services.records.retrievals import SHOWN
from lot_grpc.services.registry import Registry
from lot_grpc.services.resource_spec import Place, ResourceSpec
from lot_grpc.services.scanning import scan

_AT_ONCE = 200
_READ = ("retrieval_id", "query")


class SubjectRecords:
    """Reads the records of subjects."""

    def __init__(self, store: VectorStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    async def own(
        self, namespace: str, subject: str
    ) -> AsyncGenerator[tuple[ResourceSpec, Record]]:
        """Its records, without retrievals; of each payload only the id."""
        label = Equals("label_pairs", label_pairs({SUBJECT_LABEL: subject})[0])
        for spec in self._registry.resources.values():
            name = spec.collection.name
            keys = (spec.id_key,)
            if "label_pairs" in spec.collection.indexes:
                async for record in scan(self._store, name, namespace, [label], payload=keys):
                    yield spec, record
            elif spec.named_for_subject:
                async for record in scan(self._store, name, namespace, [], payload=keys):
                    if named_for(subject, record.payload[spec.id_key]):
                        yield spec, record

    async def showing(self, namespace: str, shown: Sequence[str]) -> dict[str, Record]:
        """The retrievals that showed one of these (as ``kind/id``), by point, with their query."""
        found: dict[str, Record] = {}
        for start in range(0, len(shown), _AT_ONCE):
            where = [AnyOf(SHOWN, tuple(shown[start : start + _AT_ONCE]))]
            async for record in scan(self._store, RETRIEVALS, namespace, where, payload=_READ):
                found[record.id] = record
        return found

    async def mentioning(self, namespace: str, subject: str) -> dict[str, Record]:
        """The retrievals whose query mentions it, by point, with their query."""
        about = mentions(subject)
        retrievals = scan(self._store, RETRIEVALS, namespace, [], payload=_READ)
        return {one.id: one async for one in retrievals if about(one.payload["query"])}

    async def places(self, namespace: str, subject: str) -> set[Place]:
        """Where all of them are."""
        places: set[Place] = set()
        shown = []
        async for spec, record in self.own(namespace, subject):
            places.add((spec.collection.name, record.id))
            shown.append(shown_key(spec.kind, record.payload[spec.id_key]))
        retrievals = {*await self.showing(namespace, shown)}
        retrievals |= {*await self.mentioning(namespace, subject)}
        return places | {(RETRIEVALS, point) for point in retrievals}


def shown_key(kind: str, id: str) -> str:
    """How a retrieval names a record that it showed."""
    return f"{ResourceKind(kind)}/{id}"


def shown_ref(name: str) -> ResourceRef:
    """The record of such a name."""
    kind, _, record_id = name.partition("/")
    return ResourceRef(ResourceKind(kind), record_id)
