"""``lot-grpc seed``: one call of ``AdminService.SeedKnowledge``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to store where; ``packs`` empty is all of them."""

    namespace: str
    packs: tuple[str, ...]
    dry_run: bool
    restore_deleted: bool


def run(
    address: str, wanted: Wanted, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask, print what was stored, and tell whether it was.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    target = target_of(address, config)
    request = pb.SeedKnowledgeRequest(
        namespace=wanted.namespace,
        packs=wanted.packs,
        dry_run=wanted.dry_run,
        restore_deleted=wanted.restore_deleted,
    )
    try:
        with connected(target) as channel:
            answer = pb_grpc.AdminServiceStub(channel).SeedKnowledge(request, timeout=timeout)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    if as_json:
        typer.echo(json.dumps(_told(target, wanted, answer), indent=2))
    else:
        for line in _lines(wanted, answer):
            typer.echo(line)
    return True


def _told(target: str, wanted: Wanted, answer: pb.SeedKnowledgeResponse) -> dict[str, object]:
    return {
        "address": target,
        "namespace": wanted.namespace or "default",
        "dry_run": wanted.dry_run,
        "created_count": answer.created_count,
        "existing_count": answer.existing_count,
        "deleted_count": answer.deleted_count,
        "created_counts": dict(sorted(answer.created_counts.items())),
        "groups": [
            {
                "name": group.name,
                "description": group.description,
                "created_count": group.created_count,
                "existing_count": group.existing_count,
                "deleted_count": group.deleted_count,
            }
            for group in answer.groups
        ],
    }


def _lines(wanted: Wanted, answer: pb.SeedKnowledgeResponse) -> Iterator[str]:
    width = max(len("pack"), *(len(group.name) for group in answer.groups))
    stored = "would be stored" if wanted.dry_run else "stored"
    yield f"{'pack':{width}}  {stored:>{len(stored)}}  there already  stay deleted"
    rows = [
        (group.name, group.created_count, group.existing_count, group.deleted_count)
        for group in answer.groups
    ]
    total = (answer.created_count, answer.existing_count, answer.deleted_count)
    for name, created, existing, deleted in (*rows, ("all", *total)):
        yield f"{name:{width}}  {created:>{len(stored)}}  {existing:>13}  {deleted:>12}"
    if answer.deleted_count and not wanted.restore_deleted:
        yield "what somebody deleted stays away; --restore-deleted stores it again"
