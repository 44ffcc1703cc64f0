"""AdminService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.policy import DEFAULT as NO_POLICY
from lot_grpc.domain.query import EmbeddingUse
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as policy_pb
from lot_grpc.ports import Clock
from lot_grpc.server.access import quota_change
from lot_grpc.server.call import Context
from lot_grpc.server.codec import admin as codec
from lot_grpc.server.codec.values import RESOURCE_KIND, EnumCodec, duration_to_pb, time_to_pb
from lot_grpc.server.page_token import name_from_token, name_to_token
from lot_grpc.server.servicers.base import DEFAULT_PAGE, ServerDescription, namespace_of
from lot_grpc.server.servicers.transfer import TransferRpcs
from lot_grpc.services.build import Services
from lot_grpc.services.records.collections import SCHEMA_VERSION
from lot_grpc.work import current_caller

_CLEAR = "AdminService.ClearNamespace with POLICY, which has quotas,"
MAX_PAGE_SIZE = 1000
MAX_LIMIT = 100
MAX_STRUCT_DEPTH = 16
"""Limits of the contract, from proto annotations and ``server.structural_checks``."""

_USE = EnumCodec(pb.EmbeddingUse.DESCRIPTOR, EmbeddingUse)


class AdminServicer(TransferRpcs):
    """Implements AdminService: converts, calls a service, converts back."""

    def __init__(self, services: Services, clock: Clock, description: ServerDescription) -> None:
        self._services = services
        self._clock = clock
        self._description = description

    # --- the server -------------------------------------------------------------------------------

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Context
    ) -> pb.GetServerInfoResponse:
        admin, description = self._services.admin, self._description
        info, contract = await admin.store_info(), admin.contract
        store = codec.store_to_pb(info, description.min_free_bytes)
        whole = _sees_all()
        return pb.GetServerInfoResponse(
            version=description.version,
            contract_version="lot.v1",
            capabilities=description.capabilities,
            backend=info.backend,
            model=contract.model,
            dimensions=contract.dimensions,
            model_sha256=contract.model_sha256,
            record_counts=codec.counts_to_pb(admin.counts(info)) if whole else None,
            store=store if whole else pb.StoreStatus(writable=store.writable),
            limits=_limits_to_pb(description, admin.max_tokens),
            start_time=time_to_pb(description.start_time),
            server_time=time_to_pb(self._clock.now()),
            schema_version=SCHEMA_VERSION,
        )

    async def CheckReady(
        self, request: pb.CheckReadyRequest, context: Context
    ) -> pb.CheckReadyResponse:
        checks = await self._services.admin.ready_checks()
        return pb.CheckReadyResponse(
            ready=all(check.ok for check in checks),
            checks=[
                pb.ReadyCheck(name=c.name, ok=c.ok, detail=c.detail if _sees_all() else "")
                for c in checks
            ],
        )

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:
        items = [
            (one.text, _USE.from_pb(one.use) or EmbeddingUse.DOCUMENT) for one in request.items
        ]
        contract = self._services.admin.contract
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
                for one in await self._services.admin.embed(items)
            ],
        )

    async def Compact(self, request: pb.CompactRequest, context: Context) -> pb.CompactResponse:
        compacted, detail = await self._services.admin.compact()
        return pb.CompactResponse(compacted=compacted, detail=detail)

    async def Reindex(
        self, request: pb.ReindexRequest, context: Context
    ) -> AsyncIterator[pb.ReindexResponse]:
        run = self._services.reindexer.run(request.model, dry_run=request.dry_run)
        async with aclosing(run) as steps:
            async for step in steps:
                yield codec.reindex_step_to_pb(step)

    # --- namespaces -------------------------------------------------------------------------------

    async def ListNamespaces(
        self, request: pb.ListNamespacesRequest, context: Context
    ) -> pb.ListNamespacesResponse:
        page = await self._services.clearing.namespaces.page(
            request.page_size or DEFAULT_PAGE,
            name_from_token(request, request.page_token),
            current_caller().principal.may_read,
        )
        namespaces = list(map(codec.usage_to_pb, page.items))
        if request.include_quota_usage:
            for one in namespaces:
                held = await self._services.runtime.stack.quotas.of(one.namespace)
                one.quota_usage.CopyFrom(codec.quota_usage_to_pb(held))
        return pb.ListNamespacesResponse(
            namespaces=namespaces, next_page_token=name_to_token(request, page.next)
        )

    async def ClearNamespace(
        self, request: pb.ClearNamespaceRequest, context: Context
    ) -> pb.ClearNamespaceResponse:
        namespace = namespace_of(request)
        if request.confirm_namespace != namespace:  # the contract compared it with what was sent
            raise invalid(
                "confirm_namespace",
                "clear_namespace.confirm",
                f"must repeat the namespace, and these credentials' own is {namespace}; set both",
            )
        kinds = RESOURCE_KIND.all_from_pb(request.resource_kinds)
        if not request.dry_run and (not kinds or ResourceKind.POLICY in kinds):
            old = await self._services.retention.policies.get(namespace)
            quota_change(_CLEAR, old.policy, NO_POLICY)
        clearing = self._services.clearing.clearer
        carry_out = clearing.count if request.dry_run else clearing.clear
        counts = await carry_out(namespace, kinds)
        return pb.ClearNamespaceResponse(
            deleted_counts=codec.counts_to_pb(counts), deleted_count=sum(counts.values())
        )

    async def EraseSubject(
        self, request: pb.EraseSubjectRequest, context: Context
    ) -> pb.EraseSubjectResponse:
        eraser = self._services.clearing.eraser
        carry_out = eraser.count if request.dry_run else eraser.erase
        return codec.erased_to_pb(await carry_out(namespace_of(request), request.subject))

    async def GetNamespacePolicy(
        self, request: policy_pb.GetNamespacePolicyRequest, context: Context
    ) -> policy_pb.GetNamespacePolicyResponse:
        namespace = namespace_of(request)
        stored = await self._services.retention.policies.get(namespace)
        quotas, usage = self._services.runtime.stack.quotas, None
        if quotas.counters.in_effect(stored.policy):  # else it is costly, and a reader may ask
            usage = codec.quota_usage_to_pb(await quotas.of(namespace))
        return policy_pb.GetNamespacePolicyResponse(policy=codec.policy_to_pb(stored), usage=usage)

    async def UpdateNamespacePolicy(
        self, request: policy_pb.UpdateNamespacePolicyRequest, context: Context
    ) -> policy_pb.UpdateNamespacePolicyResponse:
        namespace, edit = namespace_of(request), codec.policy_edit_from_pb(request)
        stored = await self._services.retention.policies.update(
            namespace,
            edit,
            request.etag,
            dry_run=request.dry_run,
            check=partial(quota_change, "AdminService.UpdateNamespacePolicy"),
        )
        quotas = self._services.runtime.stack.quotas
        usage = None
        if quota := quotas.counters.in_effect(stored.policy):
            held = await quotas.of(namespace)
            usage = codec.quota_usage_to_pb(replace(held, quota=quota))
        return policy_pb.UpdateNamespacePolicyResponse(
            policy=codec.policy_to_pb(stored),
            usage=usage,
            pending_delete_counts=await self._services.retention.sweep.pending(
                namespace, stored.policy
            ),
        )

    async def ReviewRecords(
        self, request: pb.ReviewRecordsRequest, context: Context
    ) -> pb.ReviewRecordsResponse:
        draft = codec.review_draft_from_pb(request)
        return codec.reviewed_to_pb(
            await self._services.reviewer.review(namespace_of(request), draft)
        )

    async def SeedKnowledge(
        self, request: pb.SeedKnowledgeRequest, context: Context
    ) -> pb.SeedKnowledgeResponse:
        seeds = codec.seeds_from_pb(request)
        return codec.seeded_to_pb(await self._services.seeder.seed(namespace_of(request), seeds))


def _sees_all() -> bool:
    """Whether the caller may know figures, places and faults of the whole store."""
    return current_caller().principal.server_role is not None


def _limits_to_pb(description: ServerDescription, max_tokens: int) -> pb.ServerLimits:
    limits = description.limits
    seconds = limits.max_call_seconds
    return pb.ServerLimits(
        max_message_bytes=limits.max_message_bytes,
        max_page_size=MAX_PAGE_SIZE,
        max_limit=MAX_LIMIT,
        max_batch_items=description.max_batch_items,
        max_concurrent_calls=limits.max_concurrent_calls,
        max_streams=limits.max_streams,
        max_call_duration=duration_to_pb(seconds) if seconds else None,
        max_struct_depth=MAX_STRUCT_DEPTH,
        max_embedding_tokens=max_tokens,
    )
