"""``lot-grpc seed``: one call of ``AdminService.SeedKnowledge``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer
from typer import Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.options import Json, Namespace
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

_COUNTS = ("created_count", "existing_count", "skipped_deleted_count")


def seed(
    *,
    namespace: Namespace = "",
    packs: list[str] | None = Option(
        None, "--pack", "-p", metavar="NAME", help="Only this pack. Repeatable."
    ),
    dry_run: bool = Option(False, "--dry-run", help="Store nothing; show what would be stored."),
    restore_deleted: bool = Option(
        False, "--restore-deleted", help="Also restore deleted entries."
    ),
    server: Server,
    as_json: Json = False,
) -> None:
    """Store design patterns, best practices and common errors in a running server.

    Existing entries are left unchanged. LOT_SEED_PACKS adds packs of your own.
    """
    request = pb.SeedKnowledgeRequest(
        namespace=namespace, packs=packs, dry_run=dry_run, restore_deleted=restore_deleted
    )
    with server.stub(AdminServiceStub) as stub:
        answer = stub.SeedKnowledge(request, timeout=server.timeout)
    if as_json:
        fields = {
            "address": server.target,
            "namespace": namespace,
            "dry_run": dry_run,
            **_counts(answer),
            "created_counts": dict(sorted(answer.created_counts.items())),
            "packs": [
                {"name": pack.name, "description": pack.description, **_counts(pack)}
                for pack in answer.packs
            ],
        }
        typer.echo(json.dumps(fields, indent=2))
    else:
        for line in _lines(request, answer):
            typer.echo(line)


def _counts(answer: Any) -> dict[str, int]:
    return {name: getattr(answer, name) for name in _COUNTS}


def _lines(request: pb.SeedKnowledgeRequest, answer: pb.SeedKnowledgeResponse) -> Iterator[str]:
    rows = [(pack.name, _counts(pack)) for pack in answer.packs] + [("all", _counts(answer))]
    width = max(len("pack"), *(len(name) for name, _ in rows))
    heads = ("would be stored" if request.dry_run else "stored", "already there", "deleted")
    yield "  ".join((f"{'pack':{width}}", *heads))
    for name, counts in rows:
        numbers = (f"{n:>{len(head)}}" for n, head in zip(counts.values(), heads, strict=True))
        yield "  ".join((f"{name:{width}}", *numbers))
    if answer.skipped_deleted_count and not request.restore_deleted:
        yield "deleted entries were not stored again; use --restore-deleted to restore them"
