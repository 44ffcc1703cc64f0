"""The names of the contract: what a page may call by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

from lot_grpc.pb.lot import v1
from lot_grpc.settings import env_name, groups


def settings() -> set[str]:
    """The variables of all settings."""
    return {env_name(name, key) for name, group in groups().items() for key in group.model_fields}


@cache
def names() -> frozenset[str]:
    """Services, RPCs, messages, enums and their values; fields, alone and as ``Message.field``."""
    return frozenset(_names())


def _names() -> Iterator[str]:
    for module in pkgutil.iter_modules(v1.__path__):
        if not module.name.endswith("_pb2"):
            continue
        file: Any = importlib.import_module(f"{v1.__name__}.{module.name}").DESCRIPTOR
        for message in file.message_types_by_name.values():
            yield from _names_in(message)
        for enum in file.enum_types_by_name.values():
            yield enum.name
            yield from (value.name for value in enum.values)
        for service in file.services_by_name.values():
            yield service.name
            yield from (method.name for method in service.methods)


def _names_in(message: Any) -> Iterator[str]:
    yield message.name
    for part in (*message.fields, *message.oneofs):
        yield part.name
        yield f"{message.name}.{part.name}"
    for nested in message.nested_types:
        yield from _names_in(nested)
