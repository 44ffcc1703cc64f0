"""The subcommands and their options; the work is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lot_grpc import __version__
from lot_grpc.cli.failures import reported
from lot_grpc.cli.live_commands import episodes, replay, watch
from lot_grpc.cli.maintenance_commands import reindex
from lot_grpc.cli.namespace_commands import clear, namespaces
from lot_grpc.cli.options import Address, Config, Json, new_file
from lot_grpc.cli.pattern_commands import embed, patterns, recall, stats
from lot_grpc.cli.task_commands import context, errors
from lot_grpc.cli.transfer_commands import export, import_

_SERVER = "Run a server"
_LEARNED = "Query and report"
_LIVE = "Episodes and changes"
_DATA = "Manage data"
_MORE = "Settings and evaluation"

app = typer.Typer(
    name="lot-grpc",
    help="A memory service that learns over time, for agents in any language.",
    epilog=(
        "Exit codes: 0 done or ready, 1 failed or not ready, 2 wrong usage or settings, "
        "130 interrupted."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lot-grpc {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A memory service that learns over time, for agents in any language."""


@app.command(rich_help_panel=_SERVER)
def serve(
    config: Config = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Serve what is left of a data folder that has lost files or records. "
            "Needed once: later starts expect only what is left.",
        ),
    ] = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish running calls. A second one stops immediately."""
    with reported(interrupted="interrupted"):
        from lot_grpc.cli.serve import run

        run(config, accept_loss=accept_loss)


@app.command(rich_help_panel=_SERVER)
def check(config: Config = None, json: Json = False) -> None:
    """Check, without the network, whether the service can start here: model, store, disk space."""
    from lot_grpc.cli.check import run

    with reported():
        raise typer.Exit(0 if run(config, as_json=json) else 1)


@app.command(rich_help_panel=_SERVER)
def compact(config: Config = None, json: Json = False) -> None:
    """Merge and index the embedded store. Slow; the server must not be running."""
    from lot_grpc.cli.compact import run

    with reported():
        run(config, as_json=json)


@app.command(rich_help_panel=_SERVER)
def health(
    address: Address = "",
    service: Annotated[
        str, typer.Option("--service", help="Full name of a service; empty: the whole server.")
    ] = "",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")] = 5.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Check whether a running server is serving (grpc.health.v1)."""
    from lot_grpc.cli.health import run

    with reported():
        raise typer.Exit(0 if run(address, service, timeout, config, as_json=json) else 1)


app.command(rich_help_panel=_LEARNED)(recall)
app.command(rich_help_panel=_LEARNED)(embed)
app.command(rich_help_panel=_LEARNED)(context)
app.command(rich_help_panel=_LEARNED)(errors)
app.command(rich_help_panel=_LEARNED)(patterns)
app.command(rich_help_panel=_LEARNED)(stats)
app.command(rich_help_panel=_LIVE)(episodes)
app.command(rich_help_panel=_LIVE)(replay)
app.command(rich_help_panel=_LIVE)(watch)
app.command(rich_help_panel=_DATA)(namespaces)
app.command(rich_help_panel=_DATA)(export)
app.command("import", rich_help_panel=_DATA)(import_)
app.command(rich_help_panel=_DATA)(clear)
app.command(rich_help_panel=_DATA)(reindex)


@app.command("eval", rich_help_panel=_MORE)
def evaluate(
    data: Annotated[
        list[Path],
        typer.Option("--data", "-d", metavar="DIR", help="Folder of a set. Repeatable."),
    ],
    narrowed: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FIELD",
            help="Field in which a document must match the query, applied as a real filter "
            "(`language`, else a label). SET=FIELD is for that set only. Repeatable.",
        ),
    ] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Also measure reranked hybrid search. Slow.")
    ] = False,
    queries: Annotated[
        int,
        typer.Option("--queries", min=0, metavar="N", help="Use N of the queries; 0: all."),
    ] = 0,
    groups: Annotated[
        bool, typer.Option("--groups", help="Break results down by the queries' `kind`.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE", callback=new_file, help="Save the results of each query."
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="FILE", help="Compare with a saved run."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", callback=new_file, help="Draw nDCG@10 as SVG."),
    ] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Measure retrieval quality on sets of queries with known answers.

    Documents are saved as patterns into an empty store that is removed afterwards, and found again
    through the services as `serve` wires them, without gRPC between. Your data is not touched.

    A set is a folder in BEIR's shape, each file plain or .gz: corpus.jsonl and queries.jsonl with
    one {"id" or "_id", "text"} a line (a document may have "title"; a query "kind", "source", and
    "exclude": ids of documents that do not count), and qrels.tsv or qrels/test.tsv with query id,
    document id and score, tabs between. exclusions.tsv (query id, document id) excludes too. If all
    documents have "message" and "solution", they are saved as error solutions instead, and the
    queries asked as messages.
    """
    from lot_grpc.cli.eval import Wanted, run

    with reported():
        run(
            config,
            Wanted(
                data=tuple(data),
                filters=tuple(narrowed or ()),
                rerank=rerank,
                queries=queries,
                groups=groups,
                save=save,
                compare=compare,
                picture=picture,
            ),
            as_json=json,
        )


@app.command(rich_help_panel=_LEARNED)
def report(
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace; empty: `default`.")
    ] = "",
    address: Address = "",
    sample: Annotated[
        int,
        typer.Option("--sample", min=0, max=1000, metavar="N", help="Rate the latest N; 0: 20."),
    ] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")] = 60.0,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown page.")] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Report how tasks are going: rates, trends, what worked, what to improve."""
    from lot_grpc.cli.report import run

    if json and markdown:
        raise typer.BadParameter("--json and --markdown exclude each other")
    with reported():
        told = run(address, namespace, sample, timeout, config, as_json=json, as_markdown=markdown)
        raise typer.Exit(0 if told else 1)


@app.command(rich_help_panel=_DATA)
def seed(
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace to store it in; empty: `default`.")
    ] = "",
    packs: Annotated[
        list[str] | None,
        typer.Option("--pack", "-p", metavar="NAME", help="Only this pack. Repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store nothing; show what would be stored.")
    ] = False,
    restore_deleted: Annotated[
        bool, typer.Option("--restore-deleted", help="Also restore deleted entries.")
    ] = False,
    address: Address = "",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")] = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Store design patterns, best practices and common errors in a running server.

    What is there already stays as it is. Packs of your own are named in LOT_SEED_PACKS.
    """
    from lot_grpc.cli.seed import Wanted, run

    wanted = Wanted(namespace, tuple(packs or ()), dry_run, restore_deleted)
    with reported():
        raise typer.Exit(0 if run(address, wanted, timeout, config, as_json=json) else 1)


@app.command(rich_help_panel=_MORE)
def settings(
    effective: Annotated[
        bool, typer.Option("--effective", "-e", help="Show the values in effect and their sources.")
    ] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Print a commented settings file with every setting, or the values in effect."""
    from lot_grpc.cli.show_settings import run

    with reported():
        run(config, effective=effective or json or config is not None, as_json=json)


@app.command(rich_help_panel=_MORE)
def version(json: Json = False) -> None:
    """Print the versions of lot-grpc and its dependencies."""
    from lot_grpc.cli.version import run

    with reported():
        run(as_json=json)
