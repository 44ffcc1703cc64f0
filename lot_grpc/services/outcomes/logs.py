"""The logs of a resource: its outcomes, and its context stats.

Both are deleted with the resource, by its point and its sort key.
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.ports import AnyOf, Condition, Equals, Range, Record, VectorStore
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES, SORT_KEY
from lot_grpc.services.records.resource_refs import RESOURCE, RESOURCE_KIND
from lot_grpc.services.resource_spec import RecordSet, ResourceSpec


def outcomes_of(record: Record) -> RecordSet:
    """The outcomes of a resource."""
    return RecordSet(OUTCOMES, (Equals(RESOURCE, record.id),))


def logs_of(record: Record) -> tuple[RecordSet, ...]:
    """The outcomes and the context stats of a resource whose ranking learns from them."""
    return outcomes_of(record), RecordSet(CONTEXT_STATS, (Equals(RESOURCE, record.id),))


def logs_of_kind(kind: str) -> tuple[RecordSet, ...]:
    """The same of all resources of a kind."""
    theirs = (Equals(RESOURCE_KIND, str(kind)),)
    return RecordSet(OUTCOMES, theirs), RecordSet(CONTEXT_STATS, theirs)


async def forget_logs(
    store: VectorStore, spec: ResourceSpec, record: Record, where: Sequence[Condition]
) -> None:
    """Delete what belongs to a record of a kind whose outcomes are counted."""
    for part in spec.belongings(record):
        await store.delete(part.collection, record.namespace, [*part.where, *where])


async def forget_older_logs(
    store: VectorStore, spec: ResourceSpec, records: Sequence[Record]
) -> None:
    """Delete what belonged to expired records whose ids these have just taken."""
    values: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for part in spec.belongings(record):
            for one in part.where:
                assert isinstance(one, Equals)
                assert isinstance(one.value, str)
                values.setdefault((part.collection, one.key), []).append(one.value)
    older = Range(SORT_KEY, lt=min(record.payload[SORT_KEY] for record in records))
    for (collection, key), theirs in values.items():
        found: list[Condition] = [AnyOf(key, tuple(theirs)), older]
        await store.delete(collection, records[0].namespace, found)
