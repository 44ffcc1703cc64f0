"""The ``lot-grpc`` command. Each subcommand imports what it needs when it runs."""

import os
import sys

from lot_grpc.cli.start import importing

READER_GONE = 141
"""Exit code when the reader of the output is gone, as in `| head`; shells use it for SIGPIPE."""

_STANDARD_INPUT, _STANDARD_ERROR = 0, 2


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, however early."""
    _open_standard_streams()
    try:
        with importing():
            from lot_grpc.cli.app import app

        app()
    except SystemExit as end:
        # typer and rich end a command with 1 where writing to a closed pipe fails.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(READER_GONE)
        raise
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
        os._exit(130)


def _open_standard_streams() -> None:
    """Connect closed standard streams to the null device.

    Otherwise the next file to be opened gets their number, and what libraries print goes into it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(opened, True)
    os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(_STANDARD_INPUT, closefd=False)  # noqa: SIM115 - until the end
    if sys.stderr is None:
        sys.stderr = open(_STANDARD_ERROR, "w", closefd=False)  # noqa: SIM115
