"""The ``lot-grpc`` command. What a subcommand needs is imported when it runs."""

from lot_grpc.cli.main import main

__all__ = ["main"]
