"""The subcommands, grouped as in the help. Each is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer import Option
from typer.core import TyperGroup

from lot_grpc import __version__
from lot_grpc.cli.options import command

_GROUPS = {
    "Run a server": ("serve", "check", "compact", "health", "keys", "audit"),
    "Query and report": ("recall", "embed", "context", "errors", "patterns", "stats", "report"),
    "Episodes and changes": ("episodes", "replay", "retrievals", "watch"),
    "Manage data": (
        "namespaces",
        "export",
        "import",
        "clear",
        "erase",
        "reindex",
        "seed",
        "review",
        "scan",
    ),
    "Settings and evaluation": ("eval", "settings", "version"),
}
_PYTHON_NAMES = {"import": "import_", "eval": "eval_"}


class _Commands(Mapping[str, Any]):
    """The commands by name.

    Each is a function in a module, both with the command's name, or a ``Typer`` with commands of
    its own.
    """

    def __init__(self) -> None:
        self._groups = {name: group for group, names in _GROUPS.items() for name in names}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            group = self._groups[name]
            python_name = _PYTHON_NAMES.get(name, name)
            function = getattr(import_module(f"lot_grpc.cli.{python_name}"), python_name)
            if isinstance(function, typer.Typer):
                loaded: Any = typer.main.get_group(function)
                loaded.name, loaded.rich_help_panel = name, group
            else:
                alone = typer.Typer(add_completion=False)
                alone.command(name, rich_help_panel=group)(command(function))
                loaded = typer.main.get_command(alone)
            self._loaded[name] = loaded
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


class _Group(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    name="lot-grpc",
    cls=_Group,
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


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"lot-grpc {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """A memory service that learns over time, for agents in any language."""
