"""The ``lot-grpc`` command. What a subcommand needs is imported when it runs."""

import os
import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it quietly, however early it comes."""
    try:
        from lot_grpc.cli.main import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
        os._exit(130)
