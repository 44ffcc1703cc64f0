"""The seeding of AdminService on the wire."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.services.memories.seeder import KnowledgeSeeder, Seeded, Seeds


class SeedServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, seeding: KnowledgeSeeder) -> None:
        self._seeding = seeding

    async def SeedKnowledge(
        self, request: pb.SeedKnowledgeRequest, context: Context
    ) -> pb.SeedKnowledgeResponse:
        requested = Seeds(tuple(request.packs), request.dry_run, request.restore_deleted)
        seeded = await self._seeding.seed(namespace_or_default(request.namespace), requested)
        return _seeded_to_pb(seeded)


def _seeded_to_pb(seeded: Seeded) -> pb.SeedKnowledgeResponse:
    groups = seeded.groups
    return pb.SeedKnowledgeResponse(
        created_count=sum(group.created for group in groups),
        existing_count=sum(group.existing for group in groups),
        created_counts={
            resource_kind.upper(): count for resource_kind, count in seeded.created.items()
        },
        created_by_group={group.name: group.created for group in groups},
        deleted_count=sum(group.deleted for group in groups),
        groups=[
            pb.KnowledgeGroup(
                name=group.name,
                description=group.description,
                created_count=group.created,
                existing_count=group.existing,
                deleted_count=group.deleted,
            )
            for group in groups
        ],
    )
