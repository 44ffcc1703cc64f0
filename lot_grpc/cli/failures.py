"""Turns exceptions into a message, a hint and an exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import typer

from lot_grpc.domain.errors import LotError, StoreUnavailableError

FAILED = 1
"""Exit code: the command failed, or the service is not ready."""

WRONG_USAGE = 2
"""Exit code: invalid options, settings or data."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""

HINTS = {
    "STORE_LOCKED": "only one process can open a data folder; set LOT_DATA_DIR to use another",
    "MODEL_UNAVAILABLE": "`lot-grpc check` shows which model is used and what is missing",
    "EMBEDDING_MODEL_MISMATCH": "nothing was changed; LOT_EMBEDDING_MODEL and LOT_EMBEDDING_PATH "
    "select the model, LOT_DATA_DIR the store",
    "SCHEMA_VERSION_MISMATCH": "nothing was changed; set LOT_DATA_DIR to use another store",
    "STORE_UNAVAILABLE": "with LOT_STORE=qdrant, check LOT_QDRANT_URL and LOT_QDRANT_API_KEY; "
    "with LOT_STORE=edge, check the free space and permissions of LOT_DATA_DIR",
    "STORAGE_FULL": "LOT_MIN_FREE_BYTES sets how much must stay free",
    "KNOWLEDGE_PACK_INVALID": "LOT_SEED_PACKS names the files; docs/knowledge.md has their format",
    "REDACTION_RULES_INVALID": "LOT_REDACT_RULES names the files; docs/security.md has the format",
    "SERVING_ENDED": "restart the server; all acknowledged writes are stored",
    "STARTUP": "`lot-grpc settings --effective` shows the settings in effect",
}
"""What to check next, by the error's reason; the error message itself says what is wrong."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn failures that the operator can act on into a message and an exit code.

    Other exceptions are bugs: they propagate, and Python prints the traceback.
    """
    from lot_grpc.evaluation.errors import EvalDataError
    from lot_grpc.settings_file import SettingsError

    try:
        yield
    except SettingsError as error:
        print_error(str(error), "`lot-grpc settings` prints every setting, with explanations")
        raise typer.Exit(WRONG_USAGE) from None
    except EvalDataError as error:
        print_error(error.message)
        raise typer.Exit(WRONG_USAGE) from None
    except LotError as error:
        if isinstance(error, StoreUnavailableError) and error.__cause__ is not None:
            # The message says that the cause is in the log.
            structlog.get_logger().error("the store failed", exc_info=error.__cause__)
        print_error(error.message, HINTS.get(error.reason, ""))
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def print_error(message: str, hint: str = "") -> None:
    """Print an error on stderr, with a hint if there is one."""
    _print("error", typer.colors.RED, message, bold=True)
    if hint:
        _print("hint", typer.colors.CYAN, hint)


def print_note(message: str) -> None:
    """Print a note on stderr."""
    _print("note", typer.colors.YELLOW, message)


def _print(label: str, colour: str, message: str, *, bold: bool | None = None) -> None:
    color = False if os.environ.get("NO_COLOR") else None  # None leaves it to the terminal
    typer.secho(f"{label}: ", fg=colour, bold=bold, nl=False, err=True, color=color)
    typer.echo(message, err=True)
