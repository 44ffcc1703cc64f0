"""Splits a line of an error message into the type that it begins with and the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass

THREAD = re.compile(r'Exception in thread "[^"]*" ')
CODED = re.compile(
    r"(?:.*?[\s:])??error(?:\[([A-Za-z@][\w@/.-]{1,60})\]| ([A-Z]{1,6}\d{1,6}))?: (?=\S)"
)
"""A compiler's line: ``error[E0382]: …``, ``src/a.ts(3,5): error TS2322: …``, ``error: …``."""

_TYPE = (
    r"(?:[A-Za-z_][\w$]*(?:\.|::|/))*"
    r"(?:[A-Za-z_]\w*(?:Error|Exception|Warning|Fault|Failure|Interrupt|Timeout|Exit|Panic|Group)"
    r"|Error|Exception)"
)
TYPED = re.compile(
    rf"(?:Uncaught |Unhandled |uncaught )?({_TYPE})(?: \[([A-Z]\w*)\])?(?:: ?(.*)|$)"
)
_TYPE_BEHIND = re.compile(rf"(.*\S) \(({_TYPE})\)$")
_TYPE_AROUND = re.compile(rf"((?:[A-Z]\w*(?:::|\.))+[A-Z]\w+|{_TYPE}) \((.+)\):?$")
_TYPE_AHEAD = re.compile(
    r"([A-Z][a-z]\w*[a-z](?:Error|Exception)) "
    r"(?!(?:at|in|on|is|was|has|when|while|during|occurred|raised)\b)(?=\w)"
)
"""Other positions of a type: ``undefined method 'a' (NoMethodError)``, ``KeyError (key not found:
1):``, and without a colon, as in Clojure."""

ANY_TYPED = re.compile(r"([A-Za-z_][\w.$]*)(?:: ?(.*)|$)")
"""After a Python traceback the first word is the type, whatever its name."""

_INSPECTED = re.compile(r"\[(\w.*)\](?: \{)?$")
"""Node's form of an error: ``[Error: text] {``."""

_ARGUMENTS = re.compile(r"(?:[\w.]+)?[({]")
_ARGUMENT = re.compile(r"(['\"])((?:(?!\1)[^\\]|\\.)*)\1")
_SENTENCE = 2
"""An argument with at least this many spaces is a sentence."""

_SYSTEM_CODE = re.compile(r"(E[A-Z]{3,20}[0-9]?|ERR_[A-Z_]{2,60})(?:: ?| )(.*)")
_SYSTEM_CALL = re.compile(r"[a-z]\w{1,30}(?: \S{1,200})? (E[A-Z][A-Z_]{2,20})\b")
"""``connect ECONNREFUSED …``, ``getaddrinfo ENOTFOUND …``, ``spawn x ENOENT``."""

_CODE_ALONE = re.compile(r"(?:[\w.-]+: )?([A-Z]{1,6}-?\d{2,6}): (.*)")


@dataclass(frozen=True, slots=True)
class Headline:
    """``type`` as written in the message, "" if it names none; the ``text`` after it."""

    type: str
    text: str


def typed(line: str) -> Headline:
    """Split a line into the type that it begins with and the rest."""
    line = line.strip()
    if found := THREAD.match(line):
        line = line[found.end() :]
    if (found := CODED.match(line)) and not TYPED.match(line):
        fatal = "fatal error" if found[0].endswith("fatal error: ") else ""
        return Headline(found[1] or found[2] or fatal, line[found.end() :])
    if (found := _INSPECTED.match(line)) and TYPED.match(found[1]):
        line = found[1]
    if found := _CODE_ALONE.match(line):
        return Headline(found[1], found[2])
    if found := _SYSTEM_CODE.match(line):
        return Headline(found[1], found[2])
    if found := _SYSTEM_CALL.match(line):
        return Headline(found[1], line)
    if not (found := TYPED.match(line)):
        return _typed_elsewhere(line)
    text = _prose(found[3] or "")
    if found[1] == "Error" and found[2]:
        return Headline(found[2], text)
    if found[1] == "Error":  # Node's name for all errors; the code says more
        coded = typed(text) if _SYSTEM_CODE.match(text) or _SYSTEM_CALL.match(text) else None
        return coded or Headline(found[1], text)
    return Headline(found[1], text)


def _prose(text: str) -> str:
    """The text, or if it shows the arguments of an error, the longest one that is a sentence."""
    if not _ARGUMENTS.match(text):
        return text
    sentences = (one[2] for one in _ARGUMENT.finditer(text) if one[2].count(" ") >= _SENTENCE)
    return max(sentences, key=len, default=text)


def _typed_elsewhere(line: str) -> Headline:
    """Split a line whose type is after or around the text, or before it without a colon."""
    if found := _TYPE_BEHIND.match(line):
        return Headline(found[2], found[1])
    if found := _TYPE_AROUND.match(line):
        return Headline(found[1], found[2])
    if found := _TYPE_AHEAD.match(line):
        return Headline(found[1], line[found.end() :])
    return Headline("", line)


def short_type(error_type: str) -> str:
    """The last part of a qualified name of a type."""
    return error_type.strip().replace("::", ".").replace("/", ".").rpartition(".")[2]
