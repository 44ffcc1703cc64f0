"""The kinds of record are listed in one place; what goes over all of them reads the registry."""

from __future__ import annotations

import ast
from pathlib import Path

from lot_grpc.services.records import collections
from lot_grpc.services.resources import REGISTRY

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "lot_grpc"

COLLECTIONS = {resource.collection.name for resource in REGISTRY.resources.values()}
CONSTANTS = {
    name
    for name, value in vars(collections).items()
    if name.isupper() and isinstance(value, str) and value in COLLECTIONS
}
AT_MOST = 2
"""Kinds that a module may name: its own, and one that it works together with."""

ALLOWED = {
    "services/resources.py": "the list itself",
    "services/records/collections.py": "the names of collections, for whoever uses one of them",
    "server/codec/resources.py": "the one table of messages: services know no protobuf",
    "server/codec/transfer.py": "what an export's messages say beside a thing",
}


def named(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The collections, and the members of ``ResourceKind``, that a module names."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    kinds = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ResourceKind"
    }
    return names & CONSTANTS, kinds


def test_no_module_but_the_registry_lists_the_kinds() -> None:
    listing = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("pb/") or path.name == "spec.py":  # where a kind names its relatives
            continue
        for found in named(ast.parse(path.read_text())):
            if len(found) > AT_MOST:
                listing[name] = sorted(found)
    unexpected = {name: found for name, found in listing.items() if name not in ALLOWED}
    assert not unexpected, f"these name so many kinds: read the registry instead: {unexpected}"
