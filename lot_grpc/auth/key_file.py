"""The key file, a JSON object with ``version`` and ``keys``, and the file of last uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final, Literal, TypeVar

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from lot_grpc.auth import files
from lot_grpc.auth.files import FileError
from lot_grpc.domain.api_key import Keys, check_keys

T = TypeVar("T")

WHAT: Final = "the key file"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class _Contents:
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    version: Literal[1]
    keys: Keys = ()


_CONTENTS: TypeAdapter[_Contents] = TypeAdapter(_Contents)
_USED: TypeAdapter[dict[str, AwareDatetime]] = TypeAdapter(dict[str, AwareDatetime])


def parse(path: Path, content: bytes) -> Keys:
    """The entries of a key file. Raises FileError, which quotes only names from it."""
    try:
        keys = _CONTENTS.validate_json(content, strict=True).keys
        check_keys(keys)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(one) for one in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise FileError(f"{path} is not a valid key file: {where or 'JSON'}: {problem}") from None
    except ValueError as error:
        raise FileError(f"{path} is not a valid key file: {error}") from None
    return keys


def dump(keys: Keys) -> bytes:
    """The contents of a key file, without fields that are not set."""
    return _CONTENTS.dump_json(_Contents(_VERSION, keys), indent=1, exclude_defaults=True) + b"\n"


def read_keys(path: Path) -> Keys:
    """The entries of a file. Raises FileError."""
    return parse(path, files.read(path, private=True)[0])


def change_keys(path: Path, change: Callable[[Keys], tuple[Keys, T]]) -> T:
    """Replace the entries of a file, or of one that does not exist yet, under a lock.

    Raises:
        FileError: It cannot be read or written; then nothing was changed.
    """
    with files.locked(path) as target:
        before = read_keys(target) if target.exists() else None
        after, result = change(before or ())
        if after != before:
            files.write(target, dump(after))
    return result


# --- last use -------------------------------------------------------------------------------------


def last_use_file(path: Path) -> Path:
    """Where the server of a key file writes when each was last used."""
    return path.with_name(f"{path.name}.last-use")


def read_last_use(path: Path) -> dict[str, datetime]:
    """When each key of a file was last used, by its id. Empty if that cannot be read."""
    try:
        content, _ = files.read(last_use_file(path), private=False)
        return _USED.validate_json(content)
    except (FileError, ValidationError):
        return {}


def write_last_use(path: Path, used: Mapping[str, float], ids: frozenset[str]) -> None:
    """Add times in seconds since 1970 to those written; several servers may share a key file.

    ``ids``: those of the keys that are left. Raises FileError.
    """
    with files.locked(last_use_file(path)) as target:
        now = datetime.now(UTC)
        times = {one: time for one, time in read_last_use(path).items() if one in ids}
        for one, seconds in used.items():
            time = datetime.fromtimestamp(int(seconds), UTC)
            known = times.get(one, time)
            times[one] = time if known > now else max(time, known)  # a clock that was ahead
        written = {one: time.isoformat() for one, time in sorted(times.items())}
        files.write(target, json.dumps(written, indent=1).encode() + b"\n")
