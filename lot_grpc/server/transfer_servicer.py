"""AdminService on the wire: export and import."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    ImportFormatTooNewError,
    ImportIdleError,
    ModelSwitchedError,
    StreamNotOpenedError,
    invalid,
)
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.transfer import FORMAT_VERSION, Conflict, ExportSpec, ImportTerms
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.ports import Clock
from lot_grpc.server.call import Context
from lot_grpc.server.convert.changes import RESOURCE_KIND
from lot_grpc.server.convert.transfer import (
    CONFLICT,
    Reading,
    row_from_pb,
    row_to_pb,
    specs_of,
)
from lot_grpc.server.convert.values import duration_to_pb, time_to_pb
from lot_grpc.server.export_cursor import export_cursor, position_of, request_of
from lot_grpc.server.streams import Requests
from lot_grpc.services.admin import Admin
from lot_grpc.services.records.collections import SCHEMA_VERSION
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.exporter import Exporter
from lot_grpc.services.transfer.importer import Importer, ImportRun

_MESSAGE_BYTES = 256 * 1024
"""Of a message: one record may be more."""
_MESSAGE_RECORDS = 100
"""So that an import, which checks a message at once, does not hold the loop for long."""

_OPEN_SECONDS = 30.0


class TransferServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        exporter: Exporter,
        importer: Importer,
        admin: Admin,
        clock: Clock,
        version: str,
        idle_seconds: float,
        model: CurrentModel,
        gate: ModelGate,
    ) -> None:
        """``idle_seconds``: how long an import may be without a message; 0 is no limit.

        ``gate``: each message of an import passes it, so that ``model`` stays meanwhile.
        """
        self._exporting = exporter
        self._importing = importer
        self._admin = admin
        self._clock = clock
        self._version = version
        self._idle_seconds = idle_seconds
        self._model = model
        self._gate = gate

    # --- export -------------------------------------------------------------------------------

    async def Export(
        self, request: pb.ExportRequest, context: Context
    ) -> AsyncIterator[pb.ExportResponse]:
        started = time.perf_counter()
        request_key = request_of(request)
        after = position_of(request_key, request.after_cursor)
        spec = ExportSpec(
            "" if request.all_namespaces else namespace_or_default(request.namespace),
            frozenset(RESOURCE_KIND.all_from_pb(request.resource_kinds)),
            request.include_vectors,
        )
        epoch = self._model.epoch
        yield pb.ExportResponse(header=self._header(), cursor=request.after_cursor)
        counts: dict[ResourceKind, int] = {}
        cursor = request.after_cursor
        if request.dry_run:
            counts = await self._exporting.counts(spec)
        else:
            message, size = pb.ExportResponse(), 0
            async with aclosing(self._exporting.rows(spec, after)) as rows:
                async for row, position in rows:
                    if spec.vectors and self._model.epoch != epoch:
                        raise ModelSwitchedError(self._model.contract.model)
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
                counts=_named(counts), elapsed=duration_to_pb(time.perf_counter() - started)
            ),
        )

    def _header(self) -> pb.ExportHeader:
        contract = self._admin.contract
        return pb.ExportHeader(
            format_version=FORMAT_VERSION,
            server_version=self._version,
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
        epoch = self._model.epoch
        request_iterator.limit_wait(_OPEN_SECONDS, _not_opened)
        time_slice = TimeSlice()
        async for request in request_iterator:
            if not isinstance(request, pb.ImportRequest):
                raise TypeError(type(request))
            if run is None or reading is None:
                run, reading = self._open(request)
                request_iterator.limit_wait(
                    self._idle_seconds, lambda: ImportIdleError(self._idle_seconds)
                )
            elif _opens(request):
                raise StreamNotOpenedError(
                    "namespace, keep_namespaces, header, conflict and dry_run are only allowed in "
                    "the first message; open another stream for another import"
                )
            async with self._gate.together():
                if self._model.epoch != epoch:
                    raise ModelSwitchedError(self._model.contract.model)
                rows = []
                for number, record in enumerate(request.records):
                    rows.append(row_from_pb(record, f"records[{number}]", reading))
                    await time_slice.give_way()
                await self._importing.take(run, rows)
            tally = run.tally()
            yield pb.ImportResponse(
                cursor=request.cursor,
                imported_count=tally.imported,
                unchanged_count=tally.unchanged,
                skipped_count=tally.skipped,
                counts=_named(tally.by_resource_kind or {}),
            )

    def _open(self, request: pb.ImportRequest) -> tuple[ImportRun, Reading]:
        """Raises RequestInvalidError, ImportFormatTooNewError."""
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
            CONFLICT.from_pb(request.conflict) or Conflict.FAIL, request.dry_run, same_space
        )
        namespace = "" if request.keep_namespaces else namespace_or_default(request.namespace)
        reading = Reading(
            namespace,
            exact=header.server_version == self._version,
            specs=specs_of(header.dimensions) if same_space else {},
        )
        return ImportRun(terms), reading

    def _same_space(self, header: pb.ExportHeader) -> bool:
        """Whether vectors of the export are such as this store makes of the same texts."""
        ours = self._admin.contract
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
        or request.conflict
        or request.dry_run
    )


def _named(counts: Mapping[ResourceKind, int]) -> dict[str, int]:
    return {resource_kind.name: count for resource_kind, count in counts.items()}


def _not_opened() -> StreamNotOpenedError:
    return StreamNotOpenedError(
        f"the import was not opened within {_OPEN_SECONDS:g} s; send the export's header first"
    )
