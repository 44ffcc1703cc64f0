"""What ``lot-grpc stats`` prints for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from lot_grpc.cli.namespaces import counts_text as resource_counts
from lot_grpc.cli.screen import print_line
from lot_grpc.cli.tables import Column, print_fields, print_table
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.times import seconds_of
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import admin_service_pb2 as admin_pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


@dataclass(frozen=True)
class Group:
    """Patterns of one language or category; ``stats`` is None of what is told as one."""

    name: str
    count: int
    stats: pb.GetPatternStatsResponse | None


def print_stats(
    console: Console,
    info: admin_pb.GetServerInfoResponse,
    namespace: str,
    whole: pb.GetPatternStatsResponse,
    languages: Sequence[Group],
    categories: Sequence[Group],
) -> None:
    """The server, its patterns in all, then a table by language and one by category."""
    print_line(console, ("Server, all namespaces", "bold"))
    print_fields(console, _server(info))
    console.print()
    print_line(console, (f"Patterns in {one_line(namespace)}", "bold"))
    print_fields(console, _patterns(whole))
    for title, groups in (("language", languages), ("category", categories)):
        if groups:
            print_table(console, _columns(title), groups, title)


def _server(info: admin_pb.GetServerInfoResponse) -> Iterable[tuple[str, str | Text]]:
    yield "version", info.version
    yield "store", _store(info)
    yield "model", f"{info.model}, {info.dimensions:,} dimensions" if info.model else ""
    yield "up for", _up(info)
    yield "holds", resource_counts(info.counts) or "nothing"


def _up(info: admin_pb.GetServerInfoResponse) -> str:
    if not (info.HasField("start_time") and info.HasField("server_time")):
        return ""
    return span(max(0.0, seconds_of(info.server_time) - seconds_of(info.start_time)))


def _store(info: admin_pb.GetServerInfoResponse) -> str | Text:
    store = info.store
    told = [info.backend]
    if store.disk_bytes:
        told.append(f"{size_text(store.disk_bytes)} taken")
    if store.free_bytes:
        told.append(f"{size_text(store.free_bytes)} free")
    said = ", ".join(filter(None, told))
    if store.writable:
        return said
    return Text.assemble(
        f"{one_line(said)}  ", (f"no writes: {one_line(store.detail)}", "bold red")
    )


def _patterns(whole: pb.GetPatternStatsResponse) -> Iterable[tuple[str, str]]:
    yield "count", _count(whole)
    if not whole.total_patterns:
        return
    yield "kinds", counts_text(whole.by_kind)
    yield "teach", counts_text(whole.by_pattern_type)
    yield "code", counts_text(whole.by_code_kind)
    yield "success rate", _rates(whole)
    yield "uses", _uses(whole)
    yield "most used", whole.most_used_pattern_id


def _count(whole: pb.GetPatternStatsResponse) -> str:
    if not whole.total_patterns:
        return "none"
    unused = whole.total_patterns - whole.used_count
    told = [f"{whole.total_patterns:,}", f"{whole.used_count:,} used", f"{unused:,} not used yet"]
    if whole.pinned_count:
        told.append(f"{whole.pinned_count:,} pinned")
    return ", ".join(told)


def _rates(whole: pb.GetPatternStatsResponse) -> str:
    used = (
        f"{whole.average_used_success_rate:.3f} on average of those used; "
        if whole.HasField("average_used_success_rate")
        else ""
    )
    return (
        f"{used}{whole.average_success_rate:.3f} of all, "
        f"from {whole.min_success_rate:.3f} to {whole.max_success_rate:.3f}"
    )


def _uses(whole: pb.GetPatternStatsResponse) -> str:
    if not whole.total_usage_count:
        return ""
    told = (
        f"{whole.total_usage_count:,}: {whole.total_success_count:,} worked, "
        f"{whole.total_partial_count:,} in part, {whole.total_failure_count:,} failed"
    )
    return f"{told} ({whole.success_share:.1%})" if whole.HasField("success_share") else told


def _columns(title: str) -> tuple[Column[Group], ...]:
    return (
        Column("patterns", lambda one: f"{one.count:,}", numeric=True),
        Column("used", lambda one: f"{one.stats.used_count:,}" if one.stats else "", numeric=True),
        Column("rate of those", _used_rate, numeric=True),
        Column("uses", lambda one: _usage(one), 2, numeric=True),
        Column("worked", _share, 1, numeric=True),
        Column(title, lambda one: one_line(one.name)),
    )


def _used_rate(group: Group) -> str:
    stats = group.stats
    if stats is None or not stats.HasField("average_used_success_rate"):
        return ""
    return f"{stats.average_used_success_rate:.3f}"


def _usage(group: Group) -> str:
    return f"{group.stats.total_usage_count:,}" if group.stats else ""


def _share(group: Group) -> str:
    stats = group.stats
    return f"{stats.success_share:.1%}" if stats and stats.HasField("success_share") else ""


def counts_text(counts: Mapping[str, int]) -> str:
    """``task 3, code 1``, the largest first, without those of which there are none."""
    names = sorted((name for name in counts if counts[name]), key=lambda one: (-counts[one], one))
    return ", ".join(f"{name.lower().replace('_', ' ')} {counts[name]:,}" for name in names)


def size_text(size: int) -> str:
    """Bytes as people say them, as ``1.5 GiB``."""
    amount, unit = float(size), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{size} B"
