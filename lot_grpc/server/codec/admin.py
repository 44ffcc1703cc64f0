"""Messages of AdminService, except for exports: namespaces, their policies, reindexing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit, PolicyPreset, StoredPolicy
from lot_grpc.domain.quota import NamespaceQuota
from lot_grpc.domain.subject import Erased
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as policy_pb
from lot_grpc.ports import StoreInfo
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.pairs import fields_beside
from lot_grpc.server.codec.values import EnumCodec, resource_kind_to_pb, time_to_pb
from lot_grpc.server.masks import updated_paths
from lot_grpc.server.status import to_status
from lot_grpc.services.clearing.namespaces import NamespaceUsage
from lot_grpc.services.reindex.reindexer import ReindexStep
from lot_grpc.services.reviews import ReviewDraft, Reviewed
from lot_grpc.services.seeder import Seeded, SeededPack, Seeds

_PRESET = EnumCodec(policy_pb.PolicyPreset.DESCRIPTOR, PolicyPreset)
_OUTPUT_ONLY = fields_beside(policy_pb.NamespacePolicy, NamespacePolicy)

_store = Encoder(
    StoreInfo, pb.StoreStatus, omit={"min_free_bytes", "backend", "location", "points", "sizes"}
)


def store_to_pb(info: StoreInfo, min_free_bytes: int) -> pb.StoreStatus:
    """The status of the store."""
    message = _store(info)
    message.min_free_bytes = min_free_bytes
    return message


# --- namespaces and their policies ----------------------------------------------------------------


def counts_to_pb(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by the name of the kind in ``lot.v1.ResourceKind``, without its prefix."""
    return {resource_kind.upper(): count for resource_kind, count in counts.items()}


usage_to_pb = Encoder(
    NamespaceUsage,
    pb.NamespaceUsage,
    values={"record_counts": counts_to_pb},
    omit={"quota_usage"},
)


def quota_usage_to_pb(one: NamespaceQuota) -> policy_pb.NamespaceQuotaUsage:
    """How much a namespace holds, and its limits."""
    return policy_pb.NamespaceQuotaUsage(
        record_count=one.usage.records,
        byte_count=one.usage.bytes,
        record_limit=one.quota.records,
        byte_limit=one.quota.bytes,
    )


# Thresholds are always set, so that the defaults are visible.
policy_to_pb = Encoder(
    StoredPolicy,
    policy_pb.NamespacePolicy,
    flatten=("policy",),
    values={
        "update_time": Whole(lambda one: time_to_pb(one.update_time) if one.revision else None)
    },
    omit={"revision"},
)
_policy = Decoder(policy_pb.NamespacePolicy, NamespacePolicy, path="policy", omit=_OUTPUT_ONLY)


def policy_edit_from_pb(message: policy_pb.UpdateNamespacePolicyRequest) -> PolicyEdit:
    """An edit: the preset, and the paths in the mask or populated in the policy."""
    paths = updated_paths(message.policy, message.update_mask, _OUTPUT_ONLY)
    return PolicyEdit(_policy(message.policy), frozenset(paths), _PRESET.from_pb(message.preset))


# --- reviews --------------------------------------------------------------------------------------

review_draft_from_pb = Decoder(pb.ReviewRecordsRequest, ReviewDraft, omit={"namespace"})
_reviewed = Encoder(
    Reviewed,
    pb.ReviewResult,
    values={"error": to_status},
)


def reviewed_to_pb(results: Sequence[Reviewed]) -> pb.ReviewRecordsResponse:
    """The results of a review."""
    return pb.ReviewRecordsResponse(
        results=map(_reviewed, results),
        changed_count=sum(one.changed for one in results),
        failed_count=sum(one.error is not None for one in results),
    )


# --- erasing --------------------------------------------------------------------------------------


def erased_to_pb(erased: Erased) -> pb.EraseSubjectResponse:
    """The result of an erasure."""
    return pb.EraseSubjectResponse(
        deleted_counts=counts_to_pb(erased.counts),
        deleted_count=sum(erased.counts.values()),
        records=[
            pb.SubjectRecord(resource_kind=resource_kind_to_pb(one.kind), id=one.id)
            for one in erased.records
        ],
        removed_text_count=erased.texts_removed,
    )


# --- seeding and reindexing -----------------------------------------------------------------------

seeds_from_pb = Decoder(pb.SeedKnowledgeRequest, Seeds, omit={"namespace"})
_pack_to_pb = Encoder(
    SeededPack,
    pb.KnowledgePack,
    rename={
        "created_count": "created",
        "existing_count": "existing",
        "skipped_deleted_count": "deleted",
    },
)


def seeded_to_pb(seeded: Seeded) -> pb.SeedKnowledgeResponse:
    """The result of a seeding."""
    packs = seeded.packs
    return pb.SeedKnowledgeResponse(
        created_count=sum(pack.created for pack in packs),
        existing_count=sum(pack.existing for pack in packs),
        created_counts=counts_to_pb(seeded.created),
        created_by_pack={pack.name: pack.created for pack in packs},
        skipped_deleted_count=sum(pack.deleted for pack in packs),
        packs=map(_pack_to_pb, packs),
    )


reindex_step_to_pb = Encoder(
    ReindexStep,
    pb.ReindexResponse,
    rename={"done_count": "done", "total_count": "total"},
    values={"resource_kind": resource_kind_to_pb},
)
