"""Subcommands that export and import data."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json, Namespace, new_file

Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0, help="Seconds to wait for a lost server; 0: forever."),
]


def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Output file; - is standard output.", callback=new_file
        ),
    ],
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", help="Every namespace.")
    ] = False,
    resource_kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind, such as pattern or episode. Repeatable."),
    ] = None,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors", help="Include vectors, so that a store with this model need not re-embed."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; write nothing.")] = False,
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Export a namespace to a file. An existing file is replaced only once the export is complete.

    If interrupted, it leaves FILE.part, and the same command resumes from it.

    lot-grpc export backup.lot

    lot-grpc export all.lot --all-namespaces --vectors
    """
    from lot_grpc.cli.export import Wanted, run

    if namespace and all_namespaces:
        raise typer.BadParameter("--namespace and --all-namespaces exclude each other")
    wanted = Wanted(file, namespace, all_namespaces, tuple(resource_kinds or ()), vectors, dry_run)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote; - is standard input.")
    ],
    namespace: Namespace = "",
    keep_namespaces: Annotated[
        bool, typer.Option("--keep-namespaces", help="Import into the original namespaces.")
    ] = False,
    conflict: Annotated[
        str,
        typer.Option(
            "--conflict", help="If an id exists with other content: fail, skip or overwrite."
        ),
    ] = "fail",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and count only; store nothing.")
    ] = False,
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Import an export. Identical records are left alone, so an interrupted import can be rerun.

    lot-grpc import backup.lot

    lot-grpc import all.lot --keep-namespaces --conflict skip
    """
    from lot_grpc.cli.import_ import Wanted, run

    if namespace and keep_namespaces:
        raise typer.BadParameter("--namespace and --keep-namespaces exclude each other")
    wanted = Wanted(file, namespace, keep_namespaces, conflict, dry_run)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)
