"""``lot-grpc version``."""

from __future__ import annotations

import json
import platform
from importlib import metadata

import typer

from lot_grpc import __version__
from lot_grpc.cli.options import Json

PACKAGES = (
    "grpcio",
    "protobuf",
    "protovalidate",
    "qdrant-edge-py",
    "qdrant-client",
    "fastembed",
    "onnxruntime",
    "numpy",
)
"""Packages that a bug report should name."""


def version(*, as_json: Json = False) -> None:
    """Print the versions of lot-grpc and its dependencies."""
    found = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": (packages := {name: _version(name) for name in PACKAGES}),
    }
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"lot-grpc {__version__} on Python {found['python']}, {found['platform']}")
    for name, number in packages.items():
        typer.echo(f"  {name:16}{number or 'not installed'}")


def _version(name: str) -> str:
    """The version of a package; empty if it is missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
