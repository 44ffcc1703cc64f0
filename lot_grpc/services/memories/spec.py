"""The kind ``memory``: what it stores, and how the general parts treat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import MemoryNotFoundError
from lot_grpc.domain.memory import Memory, MemoryContent, search_text
from lot_grpc.ports import Equals, Record, Vector
from lot_grpc.services.lineage.lineage import note_kind
from lot_grpc.services.outcomes.logs import logs_of, logs_of_kind
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    MEMORIES,
    PASSAGE_VECTORS,
    REQUESTS,
    SORT_KEY,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.counters import PENDING, STATS_REVISION
from lot_grpc.services.records.lineage import SUPERSEDED, SUPERSEDED_BY, SUPERSEDED_TIME
from lot_grpc.services.records.memories import (
    INDEXING,
    INDEXING_PROBLEM,
    memory_conditions,
    memory_from_record,
    memory_point,
    memory_record,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    REVIEW_INDEXES,
    Bound,
    ExportRule,
    RecordSet,
    ResourceCollection,
    ResourceSpec,
    RetentionRule,
    SeedRule,
    WatchRule,
    indexes,
)


def _seeded(
    namespace: str,
    memory_id: str,
    content: MemoryContent,
    now: int,
    sort_key: int,
    vectors: Mapping[str, Vector],
) -> Record:
    return memory_record(Memory(namespace, memory_id, content, 1, now, now), sort_key, vectors)


MEMORY: Final = ResourceSpec(
    kind=ResourceKind.MEMORY,
    id_key="memory_id",
    point=memory_point,
    read=memory_from_record,
    conditions=memory_conditions,
    missing=MemoryNotFoundError,
    method="CreateMemory",
    counted=True,
    unchanged_as_seen=(STATS_REVISION,),
    seen_keys=("memory_id", "supersedes", "revision", STATS_REVISION, SORT_KEY),
    collection=ResourceCollection(
        name=MEMORIES,
        description="A memory.",
        dense=(TEXT_VECTOR, CODE_VECTOR),
        multi=(PASSAGE_VECTORS,),
        sparse=(SPARSE_VECTOR,),
        text_of=lambda record: search_text(memory_from_record(record).content),
        expires=True,
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | REVIEW_INDEXES
        | indexes(
            keyword=f"kind language source_uri project_status tech_stack supersedes {INDEXING}",
            floating="importance",
            boolean=f"pinned {SUPERSEDED}",
            integer=f"update_time valid_from valid_until {SUPERSEDED_TIME}",
        ),
        # An import computes the vectors of a pending memory itself, and derives the marks of what
        # is superseded: so the revision of a mark must not make two imports differ.
        export=ExportRule(
            dropped=frozenset(
                {INDEXING, INDEXING_PROBLEM, SUPERSEDED, SUPERSEDED_BY, SUPERSEDED_TIME}
            ),
            done={PENDING: []},
            reset={STATS_REVISION: SORT_KEY},
            vectors_missing=lambda payload: INDEXING in payload,
        ),
    ),
    belongings=logs_of,
    cleared_along=(
        RecordSet(REQUESTS, (Equals("kind", note_kind(ResourceKind.MEMORY)),)),
        *logs_of_kind(ResourceKind.MEMORY),
    ),
    watch=WatchRule(),
    retention=RetentionRule(
        bound=lambda policy: Bound(policy.max_memories, policy.max_memory_age),
        touched=(Equals("pinned", False),),
        age_keys=("update_time",),
        keys=("importance", SUPERSEDED, SORT_KEY),
        # What is not superseded, the more important, then the newer.
        rank=lambda payload: (
            not payload.get(SUPERSEDED),
            payload["importance"],
            payload[SORT_KEY],
        ),
    ),
    seed=SeedRule(
        entries=lambda pack: pack.memories,
        text_of=search_text,
        record=_seeded,
    ),
)
