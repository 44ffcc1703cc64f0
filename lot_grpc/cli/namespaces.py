"""``lot-grpc namespaces``: the namespaces of a server, and what each holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.text import Text

from lot_grpc.cli.calls import Server
from lot_grpc.cli.lists import print_list
from lot_grpc.cli.options import JsonLines
from lot_grpc.cli.tables import Column
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import enum_word
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

Usage = Annotated[
    bool,
    typer.Option("--usage", help="Also show bytes and quotas; counting may take a while."),
]


def namespaces(server: Server, *, usage: Usage = False, as_json: JsonLines = False) -> None:
    """List the namespaces of a running server and what each holds."""
    with server.stub(AdminServiceStub) as stub:
        print_list(
            stub.ListNamespaces,
            pb.ListNamespacesRequest(include_quota_usage=usage),
            "namespaces",
            _USAGE_COLUMNS if usage else _COLUMNS,
            timeout=server.timeout,
            as_json=as_json,
        )


def _name(usage: pb.NamespaceUsage) -> Text:
    clearing = (" is being cleared", "yellow") if usage.clearing else ""
    return Text.assemble(clean(usage.namespace), clearing)


def counts_text(counts: Mapping[str, int]) -> str:
    """The number of records of each kind, in the order of the contract."""
    order = {
        enum_word(resource_kind_pb2.ResourceKind.DESCRIPTOR, one): one
        for one in resource_kind_pb2.ResourceKind.values()
    }
    names = sorted(filter(counts.get, counts), key=lambda one: order.get(one.lower(), len(order)))
    return ", ".join(counted(counts[name], clean(name.lower()).replace("_", " ")) for name in names)


_COLUMNS = (
    Column[pb.NamespaceUsage]("namespace", _name, folded=True),
    Column[pb.NamespaceUsage](
        "records", lambda one: f"{sum(one.record_counts.values()):,}", numeric=True
    ),
    Column[pb.NamespaceUsage](
        "contents", lambda one: counts_text(one.record_counts), folded=True, stretched=True
    ),
)


def _of(used: int, limit: int) -> Text:
    """How much is used, and of what limit."""
    if not limit:
        return Text(f"{used:,}")
    return Text(f"{used:,} of {limit:,}", "red" if used >= limit else "")


_USAGE_COLUMNS = (
    Column[pb.NamespaceUsage]("namespace", _name, folded=True),
    Column[pb.NamespaceUsage](
        "records",
        lambda one: _of(one.quota_usage.record_count, one.quota_usage.record_limit),
        numeric=True,
    ),
    Column[pb.NamespaceUsage](
        "bytes",
        lambda one: _of(one.quota_usage.byte_count, one.quota_usage.byte_limit),
        numeric=True,
    ),
)
