"""Rules by which secrets are found: those of this package, and the files of the operator."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from lot_grpc.data import read_table
from lot_grpc.domain.errors import RedactionRulesInvalidError
from lot_grpc.domain.secret_values import CHECKS
from lot_grpc.regexes import SpanRegex

BUILT_IN: Final = "secrets.toml"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MAX_BYTES = 1 << 20
_TYPES: Final[Mapping[str, Any]] = {
    "name": str,
    "pattern": str,
    "keywords": list,
    "check": str,
    "entropy": (int, float),
    "unless": str,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of secret is found.

    The secret is the first group of ``pattern`` that takes part in a match, or the whole match.
    One of ``keywords`` occurs in every text with a match (none: every text is searched). It is no
    secret if its entropy is lower (bits a character), if ``check`` says so, or if ``unless``
    occurs in the match.
    """

    name: str
    pattern: SpanRegex
    keywords: tuple[str, ...] = ()
    entropy: float = 0.0
    check: str = ""
    unless: SpanRegex | None = None


@cache
def built_in_rules() -> tuple[Rule, ...]:
    """The rules of this package."""
    return tuple(_rules(BUILT_IN, read_table(BUILT_IN)))


def read_rules(paths: Iterable[Path] = (), off: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules of this package and of these files, without those that are switched off by name.

    Raises:
        RedactionRulesInvalidError: A file cannot be read, something in it is wrong, or a name is
            not that of a rule.
    """
    rules = list(built_in_rules())
    for path in paths:
        for rule in _rules(str(path), _table(path)):
            if any(rule.name == other.name for other in rules):
                _wrong(str(path), rule.name, "there is a rule of this name; use another")
            rules.append(rule)
    unwanted = set(off)
    if unknown := unwanted.difference(rule.name for rule in rules):
        names = ", ".join(sorted(rule.name for rule in rules))
        _wrong("LOT_REDACT_RULES_OFF", min(unknown), f"no such rule; the rules are {names}")
    return tuple(rule for rule in rules if rule.name not in unwanted)


def _table(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            _wrong(str(path), "", "is larger than 1 MiB; split it")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        _wrong(str(path), "", f"cannot be read: {error.strerror or error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        _wrong(str(path), "", f"is not valid TOML: {error}")


def _rules(file: str, table: Mapping[str, Any]) -> list[Rule]:
    if list(table) != ["rules"] or not isinstance(table["rules"], list):
        _wrong(file, "", "needs a list of [[rules]], and nothing else")
    found: list[Rule] = []
    for number, entry in enumerate(table["rules"], 1):
        rule = _rule(file, f"{number}", entry)
        if any(rule.name == other.name for other in found):
            _wrong(file, rule.name, "occurs twice")
        found.append(rule)
    return found


def _rule(file: str, where: str, entry: Any) -> Rule:
    if not isinstance(entry, dict):
        _wrong(file, where, "must be a table")
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _wrong(file, where, "needs a name of lower-case letters, digits and _")
    for key, value in entry.items():
        if key not in _TYPES:
            _wrong(file, name, f"{key}: no such field; the fields are {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            _wrong(file, name, f"{key}: has the wrong type")
    keywords = entry.get("keywords", [])
    if not all(isinstance(word, str) and word and word.isascii() for word in keywords):
        _wrong(file, name, "keywords: must be ASCII texts that are not empty")
    check = entry.get("check", "")
    if check and check not in CHECKS:
        _wrong(file, name, f"check: must be one of {', '.join(CHECKS)}")
    pattern = _regex(file, name, "pattern", entry.get("pattern", ""))
    if pattern.occurs_in(b""):
        _wrong(file, name, "pattern: must not match an empty text")
    unless = _regex(file, name, "unless", entry["unless"]) if "unless" in entry else None
    return Rule(name, pattern, tuple(keywords), float(entry.get("entropy", 0)), check, unless)


def _regex(file: str, name: str, field: str, text: str) -> SpanRegex:
    if not text:
        _wrong(file, name, f"{field}: is missing or empty")
    try:
        return SpanRegex(text)
    except ValueError as error:
        _wrong(file, name, f"{field}: RE2 rejects it: {error}")


def _wrong(file: str, rule: str, problem: str) -> NoReturn:
    raise RedactionRulesInvalidError(file, rule, problem) from None
