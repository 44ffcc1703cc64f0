"""``lot-grpc stats``: what a running server holds, and how well its patterns worked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import typer
from rich.text import Text

from lot_grpc.cli.calls import Server
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.namespaces import counts_text as resource_counts
from lot_grpc.cli.options import OWN_NAMESPACE, Json, Namespace, PatternOptions
from lot_grpc.cli.tables import Column, print_fields, print_line, print_table, screen
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.times import seconds_of
from lot_grpc.cli.words import json_line
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import admin_service_pb2 as admin_pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub

_SHOWN = 10
"""How many languages, and categories, have a row of their own: each takes a call."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


@dataclass(frozen=True)
class _Group:
    """Patterns of one language or category; without ``stats``, the row of all others."""

    name: str
    count: int
    stats: pb.GetPatternStatsResponse | None = None

    def text(self, field: str, form: str = ",") -> str:
        """One of their statistics; empty without ``stats``."""
        return field_text(self.stats, field, form) if self.stats else ""


def stats(
    patterns: PatternOptions, *, namespace: Namespace = "", server: Server, as_json: Json = False
) -> None:
    """Show what the server holds and how well patterns worked: overall, by language, by category.

    lot-grpc stats

    lot-grpc stats --language python --min-usage 1
    """
    request = pb.GetPatternStatsRequest(namespace=namespace, filter=patterns.filter())
    info_request = admin_pb.GetServerInfoRequest(namespace=namespace)
    with server.stub(AdminServiceStub) as admin, server.stub(PatternServiceStub) as stub:
        info = admin.GetServerInfo(info_request, timeout=server.timeout)
        whole = stub.GetPatternStats(request, timeout=server.timeout)
        if as_json:
            typer.echo(f'{{"server": {json_line(info)}, "patterns": {json_line(whole)}}}')
            return
        groups = {
            "language": _groups(stub, request, "languages", whole.by_language, server.timeout),
            "category": _groups(stub, request, "categories", whole.by_category, server.timeout),
        }
    console = screen()
    print_line(console, ("Server, all namespaces", "bold"))
    print_fields(console, _server_fields(info))
    console.print()
    print_line(console, (f"Patterns in {one_line(namespace) or OWN_NAMESPACE}", "bold"))
    print_fields(console, _pattern_fields(whole))
    for title, found in groups.items():
        if found:
            columns = (*_COLUMNS, Column[_Group](title, lambda one: one.name, stretched=True))
            print_table(console, columns, found)


def _groups(
    stub: PatternServiceStub,
    request: pb.GetPatternStatsRequest,
    field: str,
    counts: Mapping[str, int],
    timeout: float,
) -> list[_Group]:
    """The largest groups, each with its own statistics under the same filter, then the rest."""
    groups = []
    names = sorted(counts, key=lambda name: (-counts[name], name))
    for name in names[:_SHOWN]:
        narrowed = pb.GetPatternStatsRequest()
        narrowed.CopyFrom(request)
        getattr(narrowed.filter, field)[:] = [name]  # one of the filter's values, if it has any
        groups.append(_Group(name, counts[name], stub.GetPatternStats(narrowed, timeout=timeout)))
    rest = names[_SHOWN:]
    if rest:
        groups.append(_Group(f"{len(rest):,} more", sum(counts[name] for name in rest)))
    return groups


def _server_fields(info: admin_pb.GetServerInfoResponse) -> Iterable[tuple[str, str | Text]]:
    yield "version", info.version
    yield "store", _store(info)
    yield "model", f"{info.model}, {info.dimensions:,} dimensions" if info.model else ""
    if info.HasField("start_time") and info.HasField("server_time"):
        yield "up for", span(max(0.0, seconds_of(info.server_time) - seconds_of(info.start_time)))
    # A key without a grant on everything is told neither the counts nor the figures of the store.
    visible = info.store != admin_pb.StoreStatus(writable=info.store.writable)
    nothing = "nothing" if visible else "nothing that these credentials may see"
    yield "holds", resource_counts(info.record_counts) or nothing


def _store(info: admin_pb.GetServerInfoResponse) -> str | Text:
    store = info.store
    used = f"{size_text(store.used_bytes)} used" if store.used_bytes else ""
    free = f"{size_text(store.free_bytes)} free" if store.free_bytes else ""
    text = ", ".join(filter(None, (info.backend, used, free)))
    if store.writable:
        return text
    return Text.assemble(
        f"{one_line(text)}  ", (f"rejects writes: {one_line(store.detail)}", "bold red")
    )


def _pattern_fields(whole: pb.GetPatternStatsResponse) -> Iterable[tuple[str, str]]:
    if not whole.total_count:
        yield "count", "none"
        return
    unused = whole.total_count - whole.used_count
    pinned = f", {whole.pinned_count:,} pinned" if whole.pinned_count else ""
    used = f"{whole.used_count:,} used, {unused:,} not used yet"
    yield "count", f"{whole.total_count:,}, {used}{pinned}"
    yield "kinds", counts_text(whole.by_kind)
    yield "types", counts_text(whole.by_pattern_type)
    yield "code", counts_text(whole.by_code_kind)
    average = (
        f"{whole.average_used_success_rate:.3f} on average of those used; "
        if whole.HasField("average_used_success_rate")
        else ""
    )
    bounds = f"from {whole.min_success_rate:.3f} to {whole.max_success_rate:.3f}"
    yield "success rate", f"{average}{whole.average_success_rate:.3f} of all, {bounds}"
    if whole.total_usage_count:
        share = f" ({whole.success_share:.1%})" if whole.HasField("success_share") else ""
        yield (
            "uses",
            f"{whole.total_usage_count:,}: {whole.total_success_count:,} worked, "
            f"{whole.total_partial_count:,} in part, {whole.total_failure_count:,} failed{share}",
        )
    yield "most used", whole.most_used_pattern_id


_COLUMNS = (
    Column[_Group]("patterns", lambda one: f"{one.count:,}", numeric=True),
    Column[_Group]("used", lambda one: one.text("used_count"), numeric=True),
    Column[_Group](
        "rate of those", lambda one: one.text("average_used_success_rate", ".3f"), numeric=True
    ),
    Column[_Group]("uses", lambda one: one.text("total_usage_count"), 2, numeric=True),
    Column[_Group]("worked", lambda one: one.text("success_share", ".1%"), 1, numeric=True),
)


def counts_text(counts: Mapping[str, int]) -> str:
    """``task 3, code 1``, largest first, without zeros."""
    names = sorted((name for name in counts if counts[name]), key=lambda one: (-counts[one], one))
    return ", ".join(f"{name.lower().replace('_', ' ')} {counts[name]:,}" for name in names)


def size_text(size: int) -> str:
    """A number of bytes in the unit that fits, such as ``1.5 GiB``."""
    amount, unit = float(size), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{size} B"
