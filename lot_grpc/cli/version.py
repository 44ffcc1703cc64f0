"""``lot-grpc version``."""

from __future__ import annotations

import json
import platform
from importlib import metadata

import typer

from lot_grpc import __version__

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
"""What a bug report should name."""


def run(*, as_json: bool) -> None:
    """Print versions; of a package that is missing, an empty one."""
    packages = {name: _version(name) for name in PACKAGES}
    found = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
    }
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"lot-grpc {__version__} on Python {found['python']}, {found['platform']}")
    for name, version in packages.items():
        typer.echo(f"  {name:16}{version or 'not installed'}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
