"""Distillation and lineage."""

from __future__ import annotations

from collections.abc import Iterable

from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.server.convert.outcomes import outcomes_to_pb
from lot_grpc.server.convert.patterns import filter_from_pb, pattern_to_pb
from lot_grpc.server.convert.values import EnumCodec, time_to_pb
from lot_grpc.services.distillation.distiller import Distilled, DistilledGroup, DistillRequest
from lot_grpc.services.patterns.lineage import Relation, Relative

RELATION = EnumCodec(pb.LineageRelation.DESCRIPTOR, Relation, "LINEAGE_RELATION_")

_MOST_GROUPS = 200
_MOST_MEMBERS = 1000


def distill_request_from_pb(request: pb.DistillPatternsRequest) -> DistillRequest:
    """What to distil."""
    return DistillRequest(
        filter_from_pb(request.filter),
        min_group_size=request.min_group_size,
        similarity=request.similarity if request.HasField("similarity") else None,
        dry_run=request.dry_run,
    )


def distilled_to_pb(distilled: Distilled) -> pb.DistillPatternsResponse:
    """What became of it, cut to what the contract names."""
    return pb.DistillPatternsResponse(
        groups=[_group_to_pb(group) for group in distilled.groups[:_MOST_GROUPS]],
        group_count=len(distilled.groups),
        pattern_count=distilled.looked_at,
        omitted_count=distilled.left_out,
        created_count=distilled.created,
        extended_count=distilled.extended,
    )


def _group_to_pb(group: DistilledGroup) -> pb.DistilledGroup:
    return pb.DistilledGroup(
        pattern=pattern_to_pb(group.pattern),
        member_pattern_ids=group.member_ids[:_MOST_MEMBERS],
        member_count=len(group.member_ids),
        groups=[_group_to_pb(below) for below in group.groups],
    )


def lineage_to_pb(relatives: Iterable[Relative]) -> list[pb.LineageEntry]:
    """Related patterns."""
    return [
        pb.LineageEntry(
            relation=RELATION.to_pb(one.relation),
            pattern_id=one.pattern.pattern_id,
            task=one.pattern.content.task,
            outcomes=outcomes_to_pb(one.pattern.outcomes),
            create_time=time_to_pb(one.pattern.create_time),
            distance=one.distance,
        )
        for one in relatives
    ]
