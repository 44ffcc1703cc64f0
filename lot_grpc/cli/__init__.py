"""The ``lot-grpc`` command. Each subcommand imports what it needs when it runs."""

import os
import sys

from lot_grpc.cli.start import importing

READER_GONE = 141
"""Exit code when the reader of the output is gone, as in `| head`; shells use it for SIGPIPE."""


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, however early."""
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
