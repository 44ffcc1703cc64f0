"""Slots: what varies between similar contents, named by what they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_QUOTES: Final = "\"'`“”„«»"

_KINDS: Final = (
    ("url", re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)),
    ("email", re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")),
    ("date", re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")),
    ("price", re.compile(r"[$€£]\s?\d[\d,]*(?:\.\d+)?")),
    ("percentage", re.compile(r"\d+(?:\.\d+)?\s?%")),
    ("number", re.compile(r"-?\d+(?:[.,]\d+)*")),
    ("host", re.compile(r"(?:[\w-]+\.)+(?:com|org|net|io|dev|edu|gov|app|co|ai)(?::\d+)?")),
    ("path", re.compile(r"(?:~|\.{1,2})?/?[\w.-]+(?:/[\w.-]+)+/?|/[\w.-]+|[\w-]+\.[a-z]{1,5}")),
    ("quoted", re.compile(rf"[{_QUOTES}][^\n]*[{_QUOTES}]")),
    ("name", re.compile(r"(?:[A-Z][\w'-]*)(?:\s+(?:[A-Z][\w'-]*|of|the|and|de|van|von|\d+))*")),
)
"""What a value may be, the narrowest first; each matches the whole of it."""

_OTHERWISE: Final = "text"
_NO_NAME: Final = re.compile(r"\W+")


def plain_value(value: Any) -> str:
    """A value as it is compared: a whole number without its fraction, a text without its quotes."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = " ".join(str(value).split())
    if len(text) > 2 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1]
    return text


def kind_of(values: Sequence[str]) -> str:
    """The common kind of the values; ``text`` if there is none. Empty ones do not count."""
    given = [value for value in values if value]
    for kind, form in _KINDS:
        if given and all(form.fullmatch(value) for value in given):
            return kind
    return _OTHERWISE


@dataclass(slots=True)
class Slots:
    """The slots of one group. The same values, member by member, are one slot wherever they occur.

    ``names`` come from the keys of arguments if the values are arguments, since those describe them
    best; else from the form of the values.
    """

    _by_values: dict[tuple[str, ...], str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _keys: dict[tuple[str, ...], str] = field(default_factory=dict)

    def learn_key(self, key: str, values: Sequence[Any]) -> None:
        """Note that an argument ``key`` holds these values; the first such key names them."""
        name = _NO_NAME.sub("_", key).strip("_").lower()
        if name:
            self._keys.setdefault(_compared(values), name)

    def name_of(self, values: Sequence[Any]) -> str:
        """The name of the slot that holds these values, one a member."""
        compared = _compared(values)
        if compared not in self._by_values:
            raw = [" ".join(str(value).split()) if value != "" else "" for value in values]
            label = self._keys.get(compared) or kind_of(raw)
            if label == _OTHERWISE:
                label = kind_of([plain_value(value) for value in values])
            name, number = label, 1
            while name in self._taken:
                number += 1
                name = f"{label}_{number}"
            self._taken.add(name)
            self._by_values[compared] = name
        return self._by_values[compared]

    def put_in(self, text: str, member: int) -> str:
        """A text of a member with the slots' names where their values stand as whole words."""
        named = {values[member]: f"{{{name}}}" for values, name in self._by_values.items()}
        words = "|".join(
            re.escape(value) for value in sorted(named, key=len, reverse=True) if value
        )
        if not words:
            return text
        return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: named[found[0]], text)

    def examples(self, most: int, longest: int) -> dict[str, list[str]]:
        """Different values by slot, in the order of the members, without missing ones.

        At most ``most`` of each, cut to ``longest`` characters.
        """
        return {
            name: list(dict.fromkeys(value[:longest] for value in values if value))[:most]
            for values, name in self._by_values.items()
        }


def _compared(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(plain_value(value) if value != "" else "" for value in values)
