"""Deletes many records, after confirmation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from lot_grpc.cli.namespaces import counts_text
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb

Request = TypeVar("Request", pb.ClearNamespaceRequest, pb.EraseSubjectRequest)
Response = TypeVar("Response", pb.ClearNamespaceResponse, pb.EraseSubjectResponse)


def delete(
    call: Callable[[Request], Response], request: Request, what: str, *, dry_run: bool, yes: bool
) -> Response | None:
    """Make the call; None if it was not confirmed. ``what`` ends the question."""
    if not (dry_run or yes):
        if not sys.stdin.isatty():
            raise typer.BadParameter(
                "no terminal to confirm on: use --yes to delete, or --dry-run to see what that "
                "deletes"
            )
        request.dry_run = True
        question = f"Permanently delete {contents_text(call(request))} {what}?"
        if not typer.confirm(question, default=False, err=True):
            return None
    request.dry_run = dry_run
    return call(request)


def contents_text(response: pb.ClearNamespaceResponse | pb.EraseSubjectResponse) -> str:
    """What was deleted, or would be."""
    return counts_text(response.deleted_counts) or "nothing"
