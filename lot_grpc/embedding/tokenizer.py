"""Loads a model's tokenizer from its files, as fastembed and transformers do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in a model's folder. It truncates to the model's maximum length and never pads.

    Raises:
        ValueError: ``tokenizer_config.json`` states no maximum length.
    """
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = _read(folder / "tokenizer_config.json")
    # Without a direction, this call would reset the tokenizer's own.
    side = config.get("truncation_side") or (tokenizer.truncation or {}).get("direction", "right")
    tokenizer.enable_truncation(_max_tokens(config), direction=side)
    tokenizer.no_padding()
    for token in _special_tokens(folder):
        if isinstance(token, dict):
            tokenizer.add_special_tokens([AddedToken(**token)])
        elif isinstance(token, str):
            tokenizer.add_special_tokens([token])
    return tokenizer


def _max_tokens(config: dict[str, Any]) -> int:
    # Where it is unknown, transformers writes 1e30 or null.
    stated = [config.get("model_max_length"), config.get("max_length")]
    known = [n for n in stated if type(n) is int and 0 < n <= sys.maxsize]
    if not known:
        raise ValueError("tokenizer_config.json states no positive model_max_length or max_length")
    return min(known)


def _special_tokens(folder: Path) -> Iterator[Any]:
    """The special tokens that ``special_tokens_map.json`` adds, if that file exists."""
    added = folder / "special_tokens_map.json"
    for value in _read(added).values() if added.exists() else ():
        yield from value if isinstance(value, list) else [value]


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
