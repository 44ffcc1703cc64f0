"""Context stats ⇄ Record. Meaning: ``domain.context_stats``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lot_grpc.domain.context_stats import ContextStats
from lot_grpc.domain.ids import ResourceRef, content_hash, point_id
from lot_grpc.domain.retrieval import is_query_hash
from lot_grpc.domain.text_form import folded
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records.collections import QUERY_VECTOR, SORT_KEY
from lot_grpc.services.records.fields import FieldCodec
from lot_grpc.services.records.resource_refs import resource_payload

REVISION = "revision"
PENDING = "pending_ids"
MERGED_INTO = "merged_into"
"""The point of the stats that count instead of these. It never changes."""
MERGING = "merging"
"""On merged stats: True until their sums were added to the others, then False."""
TAKEN_IN = "taken_in"
"""Points of stats that were added to these and may still be marked as merging."""
HASHED = "hashed"
"""True on stats whose query is a hash (``domain.retrieval.query_hash``)."""


def context_stats_point(namespace: str, resource: ResourceRef, query: str) -> str:
    """The point id of the stats of a resource and a query; white space and case are folded."""
    query_hash = content_hash([folded(query)])
    return point_id(namespace, "context_stats", resource.kind, resource.id, query_hash)


def same_query(one: str, other: str) -> bool:
    """Whether two queries share context stats."""
    return folded(one) == folded(other)


_CONTEXT_STATS = FieldCodec(ContextStats, sparse=False)


def context_stats_payload(stats: ContextStats) -> Payload:
    """Encode the sums."""
    return _CONTEXT_STATS.write(stats)


def context_stats_from_payload(payload: Mapping[str, Any]) -> ContextStats:
    """Decode the sums of a record."""
    return _CONTEXT_STATS.read(payload)


def context_stats_record(
    namespace: str,
    point: str,
    resource: ResourceRef,
    query: str,
    vector: Sequence[float],
    stats: ContextStats,
    pending: Sequence[str],
    sort_key: int,
) -> Record:
    """Encode new context stats."""
    payload: Payload = {
        **context_stats_payload(stats),
        **resource_payload(namespace, resource),
        "query": query,
        REVISION: 0,
        PENDING: list(pending),
        SORT_KEY: sort_key,
    }
    if is_query_hash(query):
        payload[HASHED] = True
    return Record(point, namespace, payload, {QUERY_VECTOR: vector})


def merged_stats_record(
    namespace: str, point: str, resource: ResourceRef, into: str, sort_key: int, revision: int = 0
) -> Record:
    """Encode stats that only refer to others, which contain them. They are not searched."""
    payload: Payload = {
        **context_stats_payload(ContextStats()),
        **resource_payload(namespace, resource),
        REVISION: revision,
        MERGED_INTO: into,
        MERGING: False,
        SORT_KEY: sort_key,
    }
    return Record(point, namespace, payload)
