"""No name is one of the words that the glossary replaced. Prose may use them where English does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto
from typer.main import get_command

from lot_grpc.cli.app import app
from tests.architecture.test_proto import descriptors

ROOT = Path(__file__).parents[2]

PARTS = frozenset(
    [
        "arrivals",
        "asked",
        "beats",
        "breath",
        "digesting",
        "doubt",
        "finishers",
        "gathering",
        "guarded",
        "keeping",
        "ledger",
        "lesson",
        "lessons",
        "lift",
        "meant",
        "moments",
        "news",
        "noun",
        "nouns",
        "saving",
        "settled",
        "stamps",
        "stamped",
        "surroundings",
        "taught",
        "told",
        "wanted",
        "wellformed",
    ]
)
"""No name has one of these among its words."""

WHOLE = frozenset(
    [
        "ask",
        "asks",
        "cells",
        "claims",
        "fact",
        "facts",
        "ground",
        "kept",
        "once",
        "opening",
        "pace",
        "passing_store",
        "question",
        "questions",
        "rooms",
        "said",
        "store_contract",
        "tell",
        "tells",
        "writers",
    ]
)
"""No name is just one of these; beside other words they mean something else."""


def words(name: str) -> list[str]:
    """The words of an identifier in any case."""
    return [one.lower() for one in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def is_old(name: str) -> bool:
    """Whether a name is, or has, one of the old words."""
    parts = words(name)
    return bool(PARTS & {*parts}) or "_".join(parts) in WHOLE


def names_in(path: Path) -> Iterator[str]:
    """The names of a module: its own, of types, functions, parameters, fields, constants."""
    yield path.stem
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name, body=body):
                yield name
                for one in body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                        yield one.target.id
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (one.id for one in targets if isinstance(one, ast.Name))


def variables_in(path: Path) -> Iterator[str]:
    """The variables of a module, those of its functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def modules() -> list[Path]:
    """Our own modules: of the product and of the Python client."""
    found = [
        path
        for folder in (ROOT / "lot_grpc", ROOT / "clients" / "python" / "src")
        for path in sorted(folder.rglob("*.py"))
        if "pb" not in path.parts
    ]
    assert len(found) > 300
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_name_of_a_module_is_an_old_word(path: Path) -> None:
    old = {name for name in names_in(path) if is_old(name)}
    old |= {name for name in variables_in(path) if PARTS & {*words(name)}}
    assert not sorted(old)


def contract_names(message: DescriptorProto) -> Iterator[str]:
    """The names of a message, its fields, and what is inside it."""
    yield message.name
    yield from (field.name for field in message.field)
    for enum in message.enum_type:
        yield from (enum.name, *(value.name for value in enum.value))
    for nested in message.nested_type:
        yield from contract_names(nested)


def test_no_name_of_the_contract_is_an_old_word() -> None:
    names: set[str] = set()
    for path, file in descriptors().items():
        if not path.startswith("lot/"):
            continue
        names.add(Path(path).stem)
        for message in file.message_type:
            names.update(contract_names(message))
        for enum in file.enum_type:
            names.update((enum.name, *(value.name for value in enum.value)))
        for service in file.service:
            names.update((service.name, *(method.name for method in service.method)))
    assert len(names) > 500
    assert not sorted(filter(is_old, names))


def test_no_name_of_a_command_is_an_old_word() -> None:
    names: list[str] = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        names += [name, *inner]
        for each in (command, *inner.values()):
            names += [option.lstrip("-") for one in each.params for option in one.opts]
    assert len(names) > 100
    assert not sorted(filter(is_old, names))


@pytest.mark.parametrize("name", ["Noun", "by_noun", "askedVectors", "OLD_STAMPS", "once", "Cells"])
def test_an_old_word_is_seen_in_any_case(name: str) -> None:
    assert is_old(name)


@pytest.mark.parametrize("name", ["announce", "at_once", "log_entry", "MemoryKind", "cell_len"])
def test_a_word_beside_others_is_none(name: str) -> None:
    assert not is_old(name)
