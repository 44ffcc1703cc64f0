"""Key files for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lot_grpc.auth.key_file import change_keys
from lot_grpc.domain.api_key import ApiKey, Keys, find_key, new_key, replaced

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """The time of day, to be moved; in seconds since 1970."""

    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


def make_key(keys: Keys = (), **fields: Any) -> tuple[ApiKey, str]:
    given: dict[str, Any] = {"name": "planner", "role": "writer", "namespaces": ("team-a",)}
    return new_key(keys, NOW, **(given | fields))


def add_key(path: Path, **fields: Any) -> str:
    """Add a key to a file, and give it; empty for a certificate."""

    def add(keys: Keys) -> tuple[Keys, str]:
        key, text = make_key(keys, **fields)
        return (*keys, key), text

    return change_keys(path, add)


def change_key(path: Path, name: str, **fields: Any) -> None:
    """Set fields of one entry of a file."""

    def change(keys: Keys) -> tuple[Keys, None]:
        return replaced(keys, replace(find_key(keys, name), **fields)), None

    change_keys(path, change)


def altered(text: str) -> dict[str, str]:
    """What is nearly a key, by what is wrong with it."""
    head, key_id, secret = text.split("_")
    other = "0" if secret[-1] != "0" else "1"
    return {
        "wrong secret": f"{head}_{key_id}_{secret[:-1]}{other}",
        "unknown id": f"{head}_{'0' * 8}_{secret}",
        "truncated": text[:-1],
        "longer": f"{text}0",
        "trailing space": f"{text} ",
        "trailing newline": f"{text}\n",
        "trailing zero byte": f"{text}\0",
        "upper case": text.upper(),
        "upper secret": f"{head}_{key_id}_{secret.upper()}",
        "no secret": f"{head}_{key_id}_",
        "only the id": key_id,
        "only the secret": secret,
        "two": f"{text}{text}",
        "other digits": text.replace(secret[0], "٣", 1) if secret[0].isdigit() else f"{text[:-1]}é",
        "surrogate": f"{text[:-1]}\udc80",
        "a hash": "-" * 64,
        "nothing": "",
        "huge": "lot_" + "a" * 100_000,
    }
