"""Reads the settings: the file, the environment, and one readable message for all mistakes."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr, ValidationError

from lot_grpc.settings import Settings, env_name, groups

CONFIG_VARIABLE = "LOT_CONFIG"
"""Names the settings file where ``--config`` does not."""

_NOT_OURS = ("LOT_TEST_", "LOT_CLIENT_")
"""Prefixes reserved for tests and client programs in the same environment."""

Table = dict[str, dict[str, Any]]


class SettingsError(Exception):
    """The settings are invalid. ``problems`` lists every problem, each a sentence."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join(("the settings cannot be used:", *self.problems)))


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting in effect: its key in the file, its variable, its value and its origin.

    A secret's ``value`` is masked.
    """

    key: str
    variable: str
    value: str | int | float | bool
    origin: Literal["default", "file", "environment"]


def load_settings(config: Path | None = None) -> Settings:
    """The settings from the environment, the file and the defaults, in this order.

    Args:
        config: The settings file; None for the one ``LOT_CONFIG`` names, if any.

    Raises:
        SettingsError: A setting is unknown, has the wrong type or contradicts another.
    """
    problems = _unknown_variables(os.environ)
    path = config or _named_file()
    table = _known(_read(path), path, problems) if path else {}
    variables = _variables()
    built: dict[str, Any] = {}
    for name, group in groups().items():
        environment = {
            key: variables[variable]
            for key in group.model_fields
            if (variable := env_name(name, key)) in variables
        }
        file = {k: v for k, v in table.get(name, {}).items() if k not in environment}
        try:
            built[name] = group(**file, **environment)
        except ValidationError as error:
            problems += [_sentence(name, file, path, dict(detail)) for detail in error.errors()]
    if problems:
        raise SettingsError(problems)
    try:
        return Settings(**built)
    except ValidationError as error:
        raise SettingsError(
            _reason(dict(detail)) for detail in error.errors(include_url=False)
        ) from None


def explain_settings(settings: Settings, config: Path | None = None) -> list[SettingValue]:
    """Every setting of ``settings``, which were read from ``config``, with its origin."""
    path = config or _named_file()
    table = _read(path) if path else {}
    variables = _variables()
    return [
        SettingValue(
            key=f"{name}.{key}",
            variable=env_name(name, key),
            value=_shown(getattr(getattr(settings, name), key)),
            origin=_origin(table, variables, name, key),
        )
        for name, group in groups().items()
        for key in group.model_fields
    ]


def _named_file() -> Path | None:
    name = os.environ.get(CONFIG_VARIABLE, "").strip()
    return Path(name).expanduser() if name else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror or error}"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError([f"{path}: is not valid TOML: {error}"]) from None


def _known(found: Mapping[str, Any], path: Path, problems: list[str]) -> Table:
    """The part of a file that names settings; the rest goes to ``problems``."""
    names = [f"{name}.{key}" for name, group in groups().items() for key in group.model_fields]
    table: Table = {}
    for name, value in found.items():
        if name not in groups():
            problems.append(f"{path}: {_no_such(name, [*groups(), *names])}")
        elif not isinstance(value, dict):
            problems.append(f"{path}: {name} is a group of settings; write it as [{name}]")
        else:
            table[name] = {}
            for key, item in value.items():
                if f"{name}.{key}" in names:
                    table[name][key] = item
                    if item != "" and _is_environment_only(name, key):
                        variable = env_name(name, key)
                        problems.append(f"{path}: {name}.{key} is a secret; set {variable} instead")
                else:
                    problems.append(f"{path}: {_no_such(f'{name}.{key}', names)}")
    return table


def _is_environment_only(group: str, key: str) -> bool:
    extra = groups()[group].model_fields[key].json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("environment_only"))


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = {CONFIG_VARIABLE} | {
        env_name(name, key) for name, group in groups().items() for key in group.model_fields
    }
    given = sorted(name.upper() for name in environ if name.upper().startswith("LOT_"))
    return [
        _no_such(name, sorted(known))
        for name in given
        if name not in known and not name.startswith(_NOT_OURS)
    ]


def _no_such(name: str, known: list[str]) -> str:
    """Suggests a setting.

    One whose last part, or variable without ``LOT_``, is the last part of the name, else the most
    similar.
    """
    last = name.rpartition(".")[2]
    nearest = [key for key in known if key.rpartition(".")[2] == last][:1]
    if not nearest and "." in name:
        variable = f"LOT_{last}".upper()
        nearest = [key for key in known if env_name(*key.split(".")) == variable][:1]
    if not nearest:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"{name}: no such setting" + (f"; did you mean {nearest[0]}?" if nearest else "")


def _sentence(group: str, given: Table | Mapping[str, Any], path: Path | None, detail: Any) -> str:
    """One validation error, naming the origin of the value."""
    key = str(detail["loc"][0]) if detail["loc"] else ""
    secret = "secret" in str(groups()[group].model_fields[key].annotation).lower()
    shown = "" if secret or _may_hold_a_key(detail["input"]) else f" = {detail['input']!r}"
    place = f"{path}: {group}.{key}" if key in given else env_name(group, key)
    return f"{place}{shown}: {_reason(detail)}"


def _may_hold_a_key(given: object) -> bool:
    """Whether a value is an address with a user or a query in it."""
    return isinstance(given, str) and "://" in given and any(sign in given for sign in "@?#")


def _reason(detail: Mapping[str, Any]) -> str:
    text = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return text.replace("\n", "\n  ")


def _origin(
    table: Mapping[str, Any], variables: Mapping[str, str], name: str, key: str
) -> Literal["default", "file", "environment"]:
    if env_name(name, key) in variables:
        return "environment"
    return "file" if key in table.get(name, {}) else "default"


def _variables() -> dict[str, str]:
    """The environment by names in upper case; an empty variable counts as none."""
    return {name.upper(): value for name, value in os.environ.items() if value}


def _shown(value: object) -> str | int | float | bool:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return "********"
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value)
    return value if isinstance(value, str | int | float | bool) else str(value)
