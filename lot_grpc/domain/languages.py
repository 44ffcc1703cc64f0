"""Canonical names of languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.data import read_table
from lot_grpc.domain.text_form import normal_form

_TABLE: Final = read_table("languages.toml")
_ALIASES: Final[Mapping[str, str]] = {
    alias: name for name, given in _TABLE["aliases"].items() for alias in given
}
_OF_CODE: Final[frozenset[str]] = frozenset(_TABLE["code"])


def language_name(given: str) -> str:
    """The canonical name: trimmed, lower case, aliases resolved (``py`` → ``python``)."""
    name = normal_form(given.strip().lower())
    return _ALIASES.get(name, name)


def is_code(language: str) -> bool:
    """Whether a language, by its canonical name, is a programming language."""
    return language in _OF_CODE
