"""Rewrites an error in plain words, for an embedding model.

A sentence model knows little of ``ENOSPC``, ``429`` or ``ModuleNotFoundError``. So codes are
replaced by their meaning, names of types are split into words, and placeholders for paths, numbers
and names are omitted. Quoted text of several words is kept: it is a message, not a name.

Every rule reads one line that is cut to ``LONGEST`` and none lets repetitions compete for the same
characters, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lot_grpc.data import read_table
from lot_grpc.domain.error_text.headline import headline_of
from lot_grpc.domain.error_text.line import short_type
from lot_grpc.domain.error_text.signature import normalised
from lot_grpc.domain.text_form import normal_form

LONGEST: Final = 400
"""Characters of the line that says what went wrong; the rest is not compared."""

_MOST_LINES: Final = 4
"""Lines of a message that are read beyond that one."""

_TABLES: Final = read_table("error_codes.toml")

CODES: Final[Mapping[str, str]] = _TABLES["errno"]
"""Names of system errors, and what they mean."""

STATUSES: Final[Mapping[str, str]] = _TABLES["http"]
"""What HTTP says by a status."""

_MESSAGE_IN_QUOTES = re.compile(
    r"\"([^\"\n]* [^\"\n]*)\"|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))*)'(?!\w)"
)
_SPAWN = re.compile(r"\bspawn [^\s:]{1,200} ENOENT\b")
_IN_OUT = re.compile(r"\b[iI]/[oO]\b")
_STATUS = re.compile(
    r"(?:request failed with )?\b(?:HTTP|status code|status|error code|code|returned)[ :=]{1,3}"
    r"([45]\d\d)\b(?: - )?|^([45]\d\d) (?=[A-Z])",
    re.IGNORECASE,
)
_ERRNO = re.compile(r"\[?\b(?:Errno|WinError|os error) \d{1,5}\]?")
_AMOUNT = re.compile(r"(?<![\w.:/-])\d[\d.,]*(?= ?[A-Za-z%]+\b)")
_STAND_IN = re.compile(r"['\"`]?<\w+>['\"`]?")
_CODE = re.compile(r"\bE[A-Z][A-Z_]{1,20}\b")
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")
_SAYS_NOTHING = re.compile(r"\b(?:Error|Exception)\b:?|^(?:fatal error|FATAL ERROR|error|fatal):")
_MARKS = re.compile(r"['\"`()\[\]]+(?!\w)|(?<!\w)['\"`()\[\]]+")
_GAP = re.compile(r"\s+([:,.;])")
_PART = re.compile(r": | - ")


def _headline(error_type: str, message: str) -> str:
    """The line that says what went wrong, with its type before it, as it was printed."""
    found = headline_of(message)
    kind = error_type or found.type
    text = found.text
    if error_type and found.type and short_type(error_type) != short_type(found.type):
        text = f"{found.type}: {text}"
    return (f"{kind}: {text}" if kind and text else kind or text)[:LONGEST]


def plain_words(error_type: str, message: str) -> str:
    """An error in plain words; its headline if nothing else remains."""
    error_type, message = normal_form(error_type), normal_form(message)
    found = headline_of(message)
    given, named = short_type(error_type), short_type(found.type)
    kind = given or named
    text = found.text if not given or not named or given == named else f"{named}: {found.text}"
    made = _shown(_with_next_lines(text[:LONGEST], message))
    whole = f"{kind}: {made}" if kind else made
    whole = _STAND_IN.sub(" ", whole)
    whole = _CODE.sub(lambda found: CODES.get(found[0], found[0]), whole)
    whole = _MARKS.sub(" ", _SAYS_NOTHING.sub(" ", _JOINT.sub(" ", whole)))
    whole = _GAP.sub(r"\1", " ".join(whole.split())).strip(" :;,.-")
    return _each_once(whole) or _headline(error_type, message)


def _with_next_lines(text: str, message: str) -> str:
    """A text with the other lines of a message of a few lines; a longer one is a trace.

    A line of one word, or that ends in a colon, says nothing by itself.
    """
    lines = message[: 2 * LONGEST].split("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES or len(message) > 2 * LONGEST:
        return text
    stripped = [line.strip() for line in lines]
    more = [
        line
        for line in stripped
        if text not in line and line not in text and " " in line and not line.endswith(":")
    ]
    return ": ".join([text, *more])


def _shown(text: str) -> str:
    """A text with codes replaced by their meaning, without varying parts."""
    text = _MESSAGE_IN_QUOTES.sub(_kept_message, text)
    text = _SPAWN.sub("command not found", text)
    text = _STATUS.sub(_meaning, _IN_OUT.sub("io", text))
    return normalised(_AMOUNT.sub(" ", _ERRNO.sub(" ", text)))


def _kept_message(found: re.Match[str]) -> str:
    inner = found[1] or found[2] or ""
    return f" {inner} " if " " in inner else found[0]


def _meaning(found: re.Match[str]) -> str:
    return f" {STATUSES.get(found[1] or found[2], found[0])} "


def _each_once(text: str) -> str:
    """The parts between colons, without repeats."""
    kept: dict[str, str] = {}
    for part in _PART.split(text):
        kept.setdefault(part.lower(), part)
    return ": ".join(kept.values())
