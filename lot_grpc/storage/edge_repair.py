"""Repairs a shard whose process died while a named vector was added or dropped.

Edge writes such a change to each segment and then to the shard's own file, and refuses to open a
shard whose files disagree (at least one time in six when killed at random around the call). A
vector that the shard's file does not name was being added: it was not acknowledged yet, so it is
removed from the segments. One that a segment lacks was being dropped: it is dropped from the other
segments and the shard's file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_CONFIG = "edge_config.json"
_SEGMENT = "segment.json"
_KINDS: Final = (("vectors", "vector_data"), ("sparse_vectors", "sparse_vector_data"))
"""The keys of dense and sparse vectors in the shard's own file and in the segments' files."""


def mend(folder: Path) -> list[str]:
    """Make the files of a closed shard agree; return the vectors that were removed.

    If interrupted at any point, it can simply be called again.
    """
    config = _read(folder / _CONFIG)
    segments = {file: _read(file) for file in sorted(folder.glob(f"segments/*/{_SEGMENT}"))}
    gone = [name for kind in _KINDS for name in _unfinished(kind, config, segments.values())]
    for file, segment in segments.items():
        if _without(segment["config"], [theirs for _, theirs in _KINDS], gone):
            _write(file, segment)
        for name in gone:
            for part in ("vector_storage", "vector_index"):
                shutil.rmtree(file.parent / f"{part}-{name}", ignore_errors=True)
    if _without(config, [ours for ours, _ in _KINDS], gone):
        _write(folder / _CONFIG, config)
    return gone


def _unfinished(kind: tuple[str, str], config: Mapping[str, Any], segments: Any) -> list[str]:
    """The names on which the files disagree."""
    ours, theirs = kind
    named = set(config.get(ours, {}))
    there = [set(segment["config"].get(theirs, {})) for segment in segments]
    return sorted(set().union(*(names ^ named for names in there)))


def _without(config: dict[str, Any], kinds: list[str], gone: list[str]) -> bool:
    """Remove names from a configuration; return whether any was there."""
    found = False
    for kind in kinds:
        for name in gone:
            found = config.get(kind, {}).pop(name, None) is not None or found
    return found


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def _write(file: Path, content: Mapping[str, Any]) -> None:
    new = file.with_name(f".new-{file.name}")
    new.write_text(json.dumps(content))
    new.replace(file)
