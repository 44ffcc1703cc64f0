"""The subcommands that move what a server holds."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json, Namespace, new_file

Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0, help="Seconds to wait for a lost server; 0: for ever."),
]


def export(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Where to; - is standard output.", callback=new_file),
    ],
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", help="All that there are.")
    ] = False,
    nouns: Annotated[
        list[str] | None,
        typer.Option("--noun", help="Just this noun, such as pattern or episode. Repeatable."),
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Vectors too: a store of this model embeds nothing.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, write nothing.")] = False,
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Write all that a namespace holds into a file, which replaces one of that name at the end.

    Killed, it has left FILE.part: the same command goes on with it.

    lot-grpc export backup.lot

    lot-grpc export all.lot --all-namespaces --vectors
    """
    from lot_grpc.cli.export import Wanted, run

    if namespace and all_namespaces:
        raise typer.BadParameter("--namespace and --all-namespaces exclude each other")
    wanted = Wanted(file, namespace, all_namespaces, tuple(nouns or ()), vectors, dry_run)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote; - is standard input.")
    ],
    namespace: Namespace = "",
    keep_namespaces: Annotated[
        bool, typer.Option("--keep-namespaces", help="Each thing where it was.")
    ] = False,
    conflict: Annotated[
        str,
        typer.Option(
            "--conflict", help="Ids taken by other content: fail, skip (keep it) or overwrite it."
        ),
    ] = "fail",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and count, store nothing.")
    ] = False,
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Store what an export wrote. What is there just so stays: killed, the same command completes.

    lot-grpc import backup.lot

    lot-grpc import all.lot --keep-namespaces --conflict skip
    """
    from lot_grpc.cli.import_ import Wanted, run

    if namespace and keep_namespaces:
        raise typer.BadParameter("--namespace and --keep-namespaces exclude each other")
    wanted = Wanted(file, namespace, keep_namespaces, conflict, dry_run)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)
