"""AdminService on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.query import EmbeddingUse
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.ports import Clock, StoreInfo
from lot_grpc.server.call import Context
from lot_grpc.server.convert.values import EnumCodec, duration_to_pb, time_to_pb
from lot_grpc.server.limits import Limits
from lot_grpc.services.admin import Admin
from lot_grpc.services.records.collections import SCHEMA_VERSION
from lot_grpc.services.records.resource_kinds import COLLECTIONS

MAX_PAGE_SIZE = 1000
MAX_LIMIT = 100
MAX_STRUCT_DEPTH = 16
"""As the contract has them: proto annotations, and ``server.wellformed``."""

_USE = EnumCodec(pb.EmbeddingUse.DESCRIPTOR, EmbeddingUse, "EMBEDDING_USE_")
_COUNTED = {names[0]: resource_kind.name for resource_kind, names in COLLECTIONS.items() if names}


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """What does not change while the server runs. ``start_time`` in microseconds since 1970."""

    version: str
    capabilities: tuple[str, ...]
    limits: Limits
    max_batch_items: int
    needed_bytes: int
    start_time: int


class AdminServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, admin: Admin, clock: Clock, facts: ServerDescription) -> None:
        self._admin = admin
        self._clock = clock
        self._facts = facts

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Context
    ) -> pb.GetServerInfoResponse:
        info = await self._admin.store_info()
        contract = self._admin.contract
        facts = self._facts
        return pb.GetServerInfoResponse(
            version=facts.version,
            contract_version="lot.v1",
            capabilities=facts.capabilities,
            backend=info.backend,
            model=contract.model,
            dimensions=contract.dimensions,
            model_sha256=contract.model_sha256,
            counts={
                resource_kind: info.points.get(name, 0) for name, resource_kind in _COUNTED.items()
            },
            store=_store_to_pb(info, facts.needed_bytes),
            limits=_limits_to_pb(facts, self._admin.max_tokens),
            start_time=time_to_pb(facts.start_time),
            server_time=time_to_pb(self._clock.now()),
            schema_version=SCHEMA_VERSION,
        )

    async def CheckReady(
        self, request: pb.CheckReadyRequest, context: Context
    ) -> pb.CheckReadyResponse:
        checks = await self._admin.ready_checks()
        return pb.CheckReadyResponse(
            ready=all(check.ok for check in checks),
            checks=[pb.ReadyCheck(name=c.name, ok=c.ok, detail=c.detail) for c in checks],
        )

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:
        items = [
            (one.text, _USE.from_pb(one.use) or EmbeddingUse.DOCUMENT) for one in request.items
        ]
        contract = self._admin.contract
        return pb.EmbedResponse(
            model=contract.model,
            dimensions=contract.dimensions,
            query_prefix=contract.query_prefix,
            embeddings=[
                pb.TextEmbedding(
                    vector=() if request.omit_vectors else one.embedding.vector,
                    truncated=one.embedding.truncated,
                    similarities=one.cosines,
                    token_count=one.tokens,
                )
                for one in await self._admin.embed(items)
            ],
        )

    async def Compact(self, request: pb.CompactRequest, context: Context) -> pb.CompactResponse:
        compacted, detail = await self._admin.compact()
        return pb.CompactResponse(compacted=compacted, detail=detail)


def _store_to_pb(info: StoreInfo, needed_bytes: int) -> pb.StoreStatus:
    return pb.StoreStatus(
        disk_bytes=info.disk_bytes,
        free_bytes=info.free_bytes,
        needed_bytes=needed_bytes,
        writable=info.writable,
        detail=info.detail,
    )


def _limits_to_pb(facts: ServerDescription, max_tokens: int) -> pb.ServerLimits:
    limits = facts.limits
    seconds = limits.max_call_seconds
    return pb.ServerLimits(
        max_message_bytes=limits.max_message_bytes,
        max_page_size=MAX_PAGE_SIZE,
        max_limit=MAX_LIMIT,
        max_batch_items=facts.max_batch_items,
        max_concurrent_calls=limits.max_concurrent_calls,
        max_streams=limits.max_streams,
        max_call_duration=duration_to_pb(seconds) if seconds else None,
        max_struct_depth=MAX_STRUCT_DEPTH,
        max_embedding_tokens=max_tokens,
    )
