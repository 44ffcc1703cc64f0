"""``lot-grpc report``: how tasks go, asked of a running server."""

from __future__ import annotations

from pathlib import Path

import grpc
import typer
from google.protobuf.json_format import MessageToJson

from lot_grpc.cli.failures import tell
from lot_grpc.cli.health import reachable
from lot_grpc.cli.report_tables import print_report
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.settings_file import load_settings

_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "is the server running there? `lot-grpc health` asks it; "
    "--address names another",
    grpc.StatusCode.DEADLINE_EXCEEDED: "a report reads every ended episode; --timeout waits longer",
}
_LARGEST_ANSWER = -1
"""Bytes; the server bounds what it sends, so nothing is bounded here."""


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
    target = address or reachable(load_settings(config).server.address)
    request = pb.GetPerformanceReportRequest(namespace=namespace, sample_size=sample_size)
    try:
        report = _ask(target, request, timeout)
    except grpc.RpcError as error:
        _tell(target, error)
        return False
    if as_json:
        typer.echo(
            MessageToJson(
                report, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
        )
    elif as_markdown:
        typer.echo(report.markdown, nl=False)
    else:
        print_report(report, namespace or "default")
    return True


def _ask(
    target: str, request: pb.GetPerformanceReportRequest, timeout: float
) -> pb.PerformanceReport:
    options = [
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_receive_message_length", _LARGEST_ANSWER),
    ]
    with grpc.insecure_channel(target, options=options) as channel:
        stub = pb_grpc.LearningServiceStub(channel)
        return stub.GetPerformanceReport(request, timeout=timeout).report


def _tell(target: str, error: grpc.RpcError) -> None:
    code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
    sentence = f"{target}: {code.name}"
    details = error.details() if isinstance(error, grpc.Call) else ""
    if details and code is not grpc.StatusCode.UNAVAILABLE:  # gRPC's own words help nobody there
        sentence += f": {details}"
    tell(sentence, _HINTS.get(code, ""))
