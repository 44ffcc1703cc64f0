"""Memory ⇄ Record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import (
    ConversationSummary,
    IndexingState,
    Memory,
    MemoryContent,
    Project,
)
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.kernel.create import SIGNATURE
from lot_grpc.ports import EXPIRES_KEY, Condition, Payload, Record, Vector
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import (
    PENDING,
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_if_any,
    uncounted,
)
from lot_grpc.services.records.fields import (
    FieldCodec,
    Filters,
    after,
    all_conditions,
    all_of,
    any_of,
    at_least,
    at_most,
    before,
    equals,
    label_keys,
    label_pairs,
    plain,
)

INDEXING, INDEXING_PROBLEM = "indexing", "indexing_problem"
"""A record has the first key only while it is pending, and the second after a failed attempt."""

_PRESERVED = (SIGNATURE, STATS_REVISION, PENDING)

_CONTENT = FieldCodec(
    MemoryContent,
    skip={"details"},
    always={"kind", "pinned", "importance"},  # since filters name them
    rename={"expire_time": EXPIRES_KEY},
)
_MEMORY = FieldCodec(
    Memory, sparse=False, skip={"namespace", "content", INDEXING, INDEXING_PROBLEM, "outcomes"}
)
_DETAILS: dict[str, type[ConversationSummary | Project]] = {
    "conversation_summary": ConversationSummary,
    "project": Project,
}


def memory_point(namespace: str, memory_id: str) -> str:
    """The point id of a memory."""
    return point_id(namespace, "memory", memory_id)


def content_payload(content: MemoryContent) -> Payload:
    """The keys that an edit writes. Filterable details are also at the top level."""
    payload = {**_CONTENT.write(content), **label_keys(content.labels)}
    for name, cls in _DETAILS.items():
        if isinstance(content.details, cls):
            details = {key: plain(value) for key, value in asdict(content.details).items()}
            payload["details"] = {name: details}
    if isinstance(content.details, Project):
        payload["project_status"] = content.details.status
        payload["tech_stack"] = list(content.details.tech_stack)
    return payload


def memory_record(
    memory: Memory, sort_key: int, vectors: Mapping[str, Vector], preserved: Payload | None = None
) -> Record:
    """Encode it whole. ``preserved``: keys of the replaced record (``preserved_in_edits``)."""
    payload = {
        **content_payload(memory.content),
        **outcomes_if_any(memory.outcomes),
        **(preserved or uncounted()),
        **_MEMORY.write(memory),
        SORT_KEY: sort_key,
    }
    if memory.indexing is not IndexingState.COMPLETE:
        payload[INDEXING] = memory.indexing.value
        if memory.indexing_problem:
            payload[INDEXING_PROBLEM] = memory.indexing_problem
    point = memory_point(memory.namespace, memory.memory_id)
    return Record(point, memory.namespace, payload, vectors)


def preserved_in_edits(payload: Mapping[str, Any]) -> Payload:
    """The keys of a record that belong to no field of a memory and outlive an edit."""
    return {key: payload[key] for key in _PRESERVED if key in payload}


def _details(stored: Mapping[str, Any] | None) -> ConversationSummary | Project | None:
    for name, value in (stored or {}).items():
        make: Callable[..., ConversationSummary | Project] = _DETAILS[name]
        return make(**{key: tuple(v) if isinstance(v, list) else v for key, v in value.items()})
    return None


def memory_from_record(record: Record) -> Memory:
    """Decode the memory of a record."""
    payload = record.payload
    content = _CONTENT.read(payload, details=_details(payload.get("details")))
    return _MEMORY.read(
        payload,
        namespace=record.namespace,
        content=content,
        indexing=IndexingState(payload.get(INDEXING, IndexingState.COMPLETE)),
        indexing_problem=payload.get(INDEXING_PROBLEM, ""),
        outcomes=outcomes_from_payload(payload),
    )


def memory_filters(criteria: MemoryFilter) -> Filters:
    """A filter as conditions, by the request field that sets them."""
    return {
        "kinds": any_of("kind", criteria.kinds),
        "languages": any_of(
            "language", tuple(language_name(given) for given in criteria.languages)
        ),
        "tags_any": any_of("tags", criteria.tags_any),
        "tags_all": all_of("tags", criteria.tags_all),
        "labels": all_of("label_pairs", label_pairs(criteria.labels)),
        "source_uris": any_of("source_uri", criteria.source_uris),
        "project_statuses": any_of("project_status", criteria.project_statuses),
        "tech_stack": any_of("tech_stack", criteria.tech_stack),
        "created_after": after("create_time", criteria.created_after),
        "created_before": before("create_time", criteria.created_before),
        "min_importance": at_least("importance", criteria.min_importance),
        "max_importance": at_most("importance", criteria.max_importance),
        "pinned": equals("pinned", criteria.pinned),
    }


def memory_conditions(criteria: MemoryFilter) -> list[Condition]:
    """A filter as conditions."""
    return all_conditions(memory_filters(criteria))
