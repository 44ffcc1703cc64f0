"""The kind ``outcome``: the log behind counters, and context stats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.ports import Equals, Not, Payload, Record
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    QUERY_VECTOR,
    SORT_KEY,
)
from lot_grpc.services.records.context_stats import (
    HASHED,
    MERGED_INTO,
    MERGING,
    PENDING,
    TAKEN_IN,
    context_stats_from_payload,
    context_stats_point,
)
from lot_grpc.services.records.outcomes import APPLIED, outcome_from_record
from lot_grpc.services.records.resource_refs import (
    RESOURCE,
    RESOURCE_KIND,
    resource_of,
    resource_payload,
)
from lot_grpc.services.resource_spec import (
    ExportRule,
    Place,
    ResourceCollection,
    ResourceSpec,
    indexes,
)

_COUNTED_IN: Final[Mapping[str, str]] = {
    ResourceKind.MEMORY: MEMORIES,
    ResourceKind.PATTERN: PATTERNS,
    ResourceKind.EPISODE: EPISODES,
    ResourceKind.ERROR_SOLUTION: ERROR_SOLUTIONS,
}


def _point(namespace: str, payload: Payload) -> str:
    return outcome_from_record(Record("", namespace, payload)).point


def _stats_point(namespace: str, payload: Payload) -> str:
    return context_stats_point(namespace, resource_of(payload), payload["query"])


def _named(namespace: str, payload: Payload) -> Payload:
    return resource_payload(namespace, resource_of(payload))


def _parent(namespace: str, payload: Payload) -> Place | None:
    """The resource; None for an outcome that names only its retrieval."""
    resource = resource_of(payload)
    if resource.kind not in _COUNTED_IN:
        return None
    return _COUNTED_IN[resource.kind], resource.point(namespace)


OUTCOME: Final = ResourceSpec(
    kind=ResourceKind.OUTCOME,
    id_key="outcome_id",
    read=outcome_from_record,
    collection=ResourceCollection(
        name=OUTCOMES,
        description="One outcome of a resource that was recalled, or a correction of one.",
        key="`outcome_id` or `corrects_outcome_id`, `resource_kind`, `resource_id`",
        indexes=indexes(
            keyword=f"{RESOURCE} {RESOURCE_KIND} outcome_id retrieval_id",
            boolean="applied",
            integer=SORT_KEY,
        ),
        export=ExportRule(
            point=_point,
            done={APPLIED: True},
            parents=tuple(_COUNTED_IN.values()),
            parent=_parent,
            dropped=frozenset({RESOURCE}),
            derived=_named,
        ),
    ),
    parts=(
        ResourceCollection(
            name=CONTEXT_STATS,
            description="The outcomes of one resource on one query (context stats).",
            key="`resource_kind`, `resource_id`, hash of `query`",
            dense=(QUERY_VECTOR,),
            query_key="query",
            derived=True,
            hashed_key=HASHED,
            with_vectors=(Not(Equals(MERGING, False)),),
            indexes=indexes(
                keyword=f"{RESOURCE} {RESOURCE_KIND} merged_into",
                boolean=f"merging {HASHED}",
                integer=SORT_KEY,
            ),
            read=lambda record: context_stats_from_payload(record.payload),
            export=ExportRule(
                point=_stats_point,
                id_keys=("query",),
                dropped=frozenset({RESOURCE, TAKEN_IN}),
                derived=_named,
                done={PENDING: []},
                parents=tuple(_COUNTED_IN.values()),
                parent=_parent,
                excluded=lambda payload: MERGED_INTO in payload,
            ),
        ),
    ),
    cleared_with=tuple(_COUNTED_IN),
)
