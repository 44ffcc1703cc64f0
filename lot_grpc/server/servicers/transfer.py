"""The RPCs of AdminService for export and import."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    ImportFormatTooNewError,
    ImportIdleError,
    ModelSwitchedError,
    StreamNotOpenedError,
    invalid,
)
from lot_grpc.domain.transfer import FORMAT_VERSION, ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceServicer
from lot_grpc.ports import Clock
from lot_grpc.server.access import quota_change
from lot_grpc.server.call import Context
from lot_grpc.server.codec.admin import counts_to_pb
from lot_grpc.server.codec.transfer import (
    CONFLICT,
    Reading,
    row_from_pb,
    row_to_pb,
)
from lot_grpc.server.codec.values import RESOURCE_KIND, duration_to_pb, time_to_pb
from lot_grpc.server.cursors import export_cursor, position_of, request_of
from lot_grpc.server.servicers.base import ServerDescription, namespace_of
from lot_grpc.server.streams import Requests
from lot_grpc.services.build import Services
from lot_grpc.services.records.collections import SCHEMA_VERSION
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.services.transfer.rows import Row

_MESSAGE_BYTES = 256 * 1024
"""Bytes of a message; a single record may be larger."""
_MESSAGE_RECORDS = 100
"""Records of a message: an import checks them in one go, which must not block the loop for long."""

_OPEN_SECONDS = 30.0


class TransferRpcs(AdminServiceServicer):
    """The part of AdminServicer for export and import."""

    _services: Services
    _clock: Clock
    _description: ServerDescription

    # --- export -------------------------------------------------------------------------------

    async def Export(
        self, request: pb.ExportRequest, context: Context
    ) -> AsyncIterator[pb.ExportResponse]:
        started = time.perf_counter()
        request_key = request_of(request)
        after = position_of(
            request_key, request.after_cursor, self._services.runtime.registry.exported
        )
        spec = ExportSpec(
            "" if request.all_namespaces else namespace_of(request),
            frozenset(RESOURCE_KIND.all_from_pb(request.resource_kinds)),
            request.include_vectors,
            request.subject,
        )
        epoch = self._services.runtime.model.epoch
        yield pb.ExportResponse(header=self._header(), cursor=request.after_cursor)
        counts: dict[str, int] = {}
        cursor = request.after_cursor
        if request.dry_run:
            counts = await self._services.transfer.exporter.counts(spec)
        else:
            message, size = pb.ExportResponse(), 0
            async with aclosing(self._services.transfer.exporter.rows(spec, after)) as rows:
                async for row, position in rows:
                    if spec.vectors and self._services.runtime.model.epoch != epoch:
                        raise ModelSwitchedError(self._services.runtime.model.contract.model)
                    record = row_to_pb(row, vectors=spec.vectors)
                    bytes_ = record.ByteSize()
                    if size and (
                        size + bytes_ > _MESSAGE_BYTES or len(message.records) >= _MESSAGE_RECORDS
                    ):
                        message.cursor = cursor
                        yield message
                        message, size = pb.ExportResponse(), 0
                    message.records.append(record)
                    size += bytes_
                    cursor = export_cursor(request_key, position)
                    if row.kind.is_thing:
                        counts[row.kind.resource_kind] = counts.get(row.kind.resource_kind, 0) + 1
            if size:
                message.cursor = cursor
                yield message
        yield pb.ExportResponse(
            cursor=cursor,
            summary=pb.ExportSummary(
                record_counts=counts_to_pb(counts),
                elapsed=duration_to_pb(time.perf_counter() - started),
            ),
        )

    def _header(self) -> pb.ExportHeader:
        contract = self._services.admin.contract
        return pb.ExportHeader(
            format_version=FORMAT_VERSION,
            server_version=self._description.version,
            embedding_model=contract.model,
            dimensions=contract.dimensions,
            export_time=time_to_pb(self._clock.now()),
            embedding_model_sha256=contract.model_sha256,
            schema_version=SCHEMA_VERSION,
            tokenizer=contract.tokenizer,
        )

    # --- import -------------------------------------------------------------------------------

    async def Import(  # type: ignore[override]  # the iterator has a limit to its wait
        self, request_iterator: Requests, context: Context
    ) -> AsyncIterator[pb.ImportResponse]:
        run: ImportRun | None = None
        reading: Reading | None = None
        epoch = self._services.runtime.model.epoch
        request_iterator.limit_wait(_OPEN_SECONDS, _not_opened)
        time_slice = TimeSlice()
        async for request in request_iterator:
            if not isinstance(request, pb.ImportRequest):
                raise TypeError(type(request))
            if run is None or reading is None:
                run, reading = self._open(request)
                seconds = self._description.limits.stream_idle_seconds
                request_iterator.limit_wait(seconds, partial(ImportIdleError, seconds))
            elif _opens(request):
                raise StreamNotOpenedError(
                    "namespace, keep_namespaces, header, conflict_policy and dry_run are only "
                    "allowed in the first message; open another stream for another import"
                )
            async with self._services.runtime.gate.together():
                if self._services.runtime.model.epoch != epoch:
                    raise ModelSwitchedError(self._services.runtime.model.contract.model)
                rows = []
                for number, record in enumerate(request.records):
                    rows.append(row_from_pb(record, f"records[{number}]", reading))
                    await time_slice.give_way()
                await self._refuse_quotas(rows)
                await self._services.transfer.importer.take(run, rows)
            tally = run.tally()
            yield pb.ImportResponse(
                cursor=request.cursor,
                imported_count=tally.imported,
                unchanged_count=tally.unchanged,
                skipped_count=tally.skipped,
                imported_counts=counts_to_pb(tally.by_resource_kind or {}),
            )

    async def _refuse_quotas(self, rows: Sequence[Row]) -> None:
        """Refuse policies with other quotas, from who may not change those."""
        for row in rows:
            if row.kind.resource_kind == ResourceKind.POLICY:
                old = await self._services.retention.policies.get(row.record.namespace)
                quota_change("AdminService.Import", old.policy, row.kind.read(row.record).policy)

    def _open(self, request: pb.ImportRequest) -> tuple[ImportRun, Reading]:
        """Start an import. Raises RequestInvalidError, ImportFormatTooNewError."""
        if not request.HasField("header"):
            raise invalid(
                "header", "required", "the first message opens the import; set the export's header"
            )
        header = request.header
        if header.format_version < 1:
            raise invalid("header.format_version", "int32.gte", "must be that of the export")
        if header.format_version > FORMAT_VERSION:
            raise ImportFormatTooNewError(
                f"format {header.format_version}", f"format {FORMAT_VERSION}", header.server_version
            )
        if header.schema_version > SCHEMA_VERSION:
            raise ImportFormatTooNewError(
                f"schema {header.schema_version}", f"schema {SCHEMA_VERSION}", header.server_version
            )
        same_space = self._same_space(header)
        terms = ImportTerms(
            CONFLICT.from_pb(request.conflict_policy) or ImportConflictPolicy.FAIL,
            request.dry_run,
            same_space,
        )
        namespace = "" if request.keep_namespaces else namespace_of(request)
        reading = Reading(
            namespace,
            exact=header.server_version == self._description.version,
            collections=self._services.runtime.registry.exported,
            dimensions=header.dimensions if same_space else 0,
        )
        return ImportRun(terms), reading

    def _same_space(self, header: pb.ExportHeader) -> bool:
        """Whether the export's vectors equal those that this store makes of the same texts."""
        ours = self._services.admin.contract
        return (
            header.embedding_model,
            header.dimensions,
            header.embedding_model_sha256,
            header.tokenizer,
            header.schema_version,
        ) == (ours.model, ours.dimensions, ours.model_sha256, ours.tokenizer, SCHEMA_VERSION)


def _opens(request: pb.ImportRequest) -> bool:
    return bool(
        request.namespace
        or request.keep_namespaces
        or request.HasField("header")
        or request.conflict_policy
        or request.dry_run
    )


def _not_opened() -> StreamNotOpenedError:
    return StreamNotOpenedError(
        f"the import was not opened within {_OPEN_SECONDS:g} s; send the export's header first"
    )
