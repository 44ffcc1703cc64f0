"""``lot-grpc stats``: what a running server holds, and how well its patterns worked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.pattern_filters import Narrowing
from lot_grpc.cli.screen import screen
from lot_grpc.cli.stats_tables import Group, print_stats
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as admin_pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as admin_grpc
from lot_grpc.pb.lot.v1 import pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc

_SHOWN = 10
"""Languages, and categories, that are told one by one: each takes a call."""


def run(
    namespace: str,
    narrowing: Narrowing,
    address: str,
    timeout: float,
    config: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Ask and print, and tell whether there was an answer.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    request = pb.GetPatternStatsRequest(namespace=namespace, filter=narrowing.filter())
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            stub = pb_grpc.PatternServiceStub(channel)
            asked = admin_pb.GetServerInfoRequest(namespace=namespace)
            info = admin_grpc.AdminServiceStub(channel).GetServerInfo(asked, timeout=timeout)
            whole = stub.GetPatternStats(request, timeout=timeout)
            if as_json:
                typer.echo(f'{{"server": {json_line(info)}, "patterns": {json_line(whole)}}}')
                return True
            languages = _groups(stub, request, "languages", whole.by_language, timeout)
            categories = _groups(stub, request, "categories", whole.by_category, timeout)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    print_stats(screen(), info, namespace or "default", whole, languages, categories)
    return True


def _groups(
    stub: pb_grpc.PatternServiceStub,
    request: pb.GetPatternStatsRequest,
    field: str,
    counts: Mapping[str, int],
    timeout: float,
) -> list[Group]:
    """The largest ones with their own figures, by the same filter, then the rest as one."""
    names = sorted(counts, key=lambda name: (-counts[name], name))
    groups = [
        Group(name, counts[name], stub.GetPatternStats(_of(request, field, name), timeout=timeout))
        for name in names[:_SHOWN]
    ]
    rest = names[_SHOWN:]
    if rest:
        groups.append(Group(f"{len(rest):,} more", sum(counts[name] for name in rest), None))
    return groups


def _of(request: pb.GetPatternStatsRequest, field: str, name: str) -> pb.GetPatternStatsRequest:
    narrowed = pattern_pb2.PatternFilter()
    narrowed.CopyFrom(request.filter)
    values = getattr(narrowed, field)
    del values[:]  # the name is one of those values, or any would do
    values.append(name)
    return pb.GetPatternStatsRequest(namespace=request.namespace, filter=narrowed)
