"""``lot-grpc report``: how tasks go, asked of a running server."""

from __future__ import annotations

from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.report_tables import print_report
from lot_grpc.cli.screen import print_page
from lot_grpc.cli.words import json_page
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import performance_pb2 as pb

_HINTS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "a report reads every ended episode; --timeout waits longer",
}


def run(
    address: str,
    namespace: str,
    sample_size: int,
    timeout: float,
    config: Path | None,
    *,
    as_json: bool,
    as_markdown: bool,
) -> bool:
    """Ask, print the report, and tell whether there was one.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    target = target_of(address, config)
    request = pb.GetPerformanceReportRequest(namespace=namespace, sample_size=sample_size)
    try:
        report = _ask(target, request, timeout)
    except grpc.RpcError as error:
        tell_failure(target, error, _HINTS)
        return False
    if as_json:
        typer.echo(json_page(report))
    elif as_markdown:
        print_page(report.markdown)
    else:
        print_report(report, namespace or "default")
    return True


def _ask(
    target: str, request: pb.GetPerformanceReportRequest, timeout: float
) -> pb.PerformanceReport:
    with connected(target) as channel:
        stub = pb_grpc.LearningServiceStub(channel)
        return stub.GetPerformanceReport(request, timeout=timeout).report
