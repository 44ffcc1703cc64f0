"""Errors that tools report as data: JSON documents and lines, SARIF, JUnit's XML, key=value lines.

The messages of a document are read in its order, each with its code (``error[code]: message``). If
any entry is an error, those of a lower level are omitted.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

_DEEPEST: Final = 12
_MOST: Final = 400
"""Maximum number of texts from one document."""

_WHOLE: Final = (
    "rendered",
    "longrepr",
    "stack",
    "stacktrace",
    "stack_trace",
    "traceback",
    "exc_info",
)
"""Field with the error as it would be printed, including the message."""

_TEXTS_WORDS: Final = """
message msg log error err errors stderr output stdout text reason detail details title
description cause panic exception error_message errormessage fatal failure failures body content
event data response shortmessage fulldescription
"""
_TEXTS: Final = frozenset(_TEXTS_WORDS.split())
_MESSAGES: Final = ("msg", "message")
_REASONS: Final = ("error", "err")
"""Fields for what went wrong, and for the reason."""
_CODES: Final = ("code", "ruleId", "rule_id", "error_type", "errorType")
_TYPES: Final = ("type", "name", "class", "exc_type")
"""Fields that are a code only if they have the name of an error."""
_LEVELS: Final = ("level", "severity", "levelname", "kind")
_MINOR: Final = frozenset(
    [
        "info",
        "debug",
        "trace",
        "notice",
        "note",
        "warning",
        "warn",
        "verbose",
        "1",
        "20",
        "30",
        "10",
    ]
)
_ERRORS: Final = frozenset(
    [
        "error",
        "fatal",
        "critical",
        "err",
        "panic",
        "severe",
        "emerg",
        "alert",
        "failure",
        "2",
        "40",
        "50",
        "60",
    ]
)
_TAILS: Final = 3
"""How many places in a line are tried as the beginning of data."""

_CODE: Final = re.compile(r"[A-Za-z@][\w@/.-]{2,60}")
_TYPE: Final = re.compile(r"[\w.]{0,60}(?:Error|Exception|Fault|Failure|_error|_exceeded)")

_FIELD: Final = re.compile(
    r"(?<![\w.])(?:err|error|msg|message|details?|reason|cause|panic|exception) ?= ?"
    r"\"((?:[^\"\\]|\\.)*)\""
)
_JSON_FIELD: Final = re.compile(
    r"[ \t]*[\"']"
    r"(?:message|msg|error|err|detail|details|reason|title|stderr|description|panic)[\"']"
    r"[ \t]*:[ \t]*([\"'])((?:(?!\1)[^\\]|\\.)*)(?:\1[,}\] \t]*)?$"
)
_TAIL: Final = re.compile(r"(?:^|[\t :>-])(?=[{\[][\"'{ ])")
_XML: Final = re.compile(r"<(failure|error)\b([^<>]{0,4000}?)(/?)>")
_ATTRIBUTE: Final = re.compile(r"\b(message|type)=(?:\"([^\"]*)\"|'([^']*)')")


def report_text(text: str) -> str:
    """The messages of data as text; any other text unchanged."""
    bare = text.strip()
    if bare.startswith("<") and "<test" in bare[:2000] and _XML.search(bare):
        return "\n".join(_xml(bare)) or text
    if bare[:1] in ("{", "[") and (data := _loaded(bare)) is not None:
        return "\n".join(_texts(data)) or text
    if "{" not in bare and "=" not in bare and '":' not in bare:
        return text
    return "\n".join(_line(line) for line in text.splitlines())


def _line(line: str) -> str:
    """A log line with data: as a whole, after a message, or as key="value" pairs."""
    bare = line.strip()
    if bare[:1] in ("{", "[") and (data := _loaded(bare)) is not None:
        return "".join(_logged(data)) or line
    if found := _JSON_FIELD.match(line):
        return _unescaped(found[2])
    if pairs := _FIELD.findall(line):
        return "\n".join(_unescaped(pair) for pair in reversed(pairs))
    for found in islice(_TAIL.finditer(line[:400]), _TAILS):
        data = _loaded(line[found.end() :].strip())
        if data is not None:
            texts = _texts(data)
            return "\n".join([line[: found.start()].rstrip(" \t:=>-"), *texts]) if texts else line
    return line


def _unescaped(text: str) -> str:
    loaded = _loaded(f'"{text}"') if "\\" in text else text
    return loaded if isinstance(loaded, str) else text


def _loaded(text: str) -> Any:
    """The value of JSON or of a similar ``repr``; None for neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if "'" not in text or len(text) > 16_384 or re.search(r"[-+~(]{9}|[({\[]{50}", text):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _logged(data: Any) -> Iterator[str]:
    """The text of one log line; Docker's includes the line break."""
    if isinstance(data, dict) and isinstance(data.get("log"), str):
        yield data["log"].rstrip("\n")
    else:
        yield "\n".join(_texts(data))


def _texts(data: Any) -> list[str]:
    found = list(_walked(data, 0))
    if any(level in _ERRORS for level, _ in found):
        found = [one for one in found if one[0] not in _MINOR]
    return list(dict.fromkeys(text for _, text in found))[:_MOST]


def _walked(data: Any, depth: int, level: str = "", outer: str = "") -> Iterator[tuple[str, str]]:
    """Texts with the level of their entry."""
    if depth > _DEEPEST:
        return
    if isinstance(data, list):
        for one in data[:_MOST]:
            yield from _walked(one, depth + 1, level, outer)
    if not isinstance(data, dict):
        return
    if isinstance(data.get("runs"), list):  # SARIF: the rules next to the results are not errors
        runs = [run for run in data["runs"][:_MOST] if isinstance(run, dict)]
        yield from _walked([run.get("results") for run in runs], depth + 1, level)
        return
    level = next((str(data[key]).lower() for key in _LEVELS if _is_level(data.get(key))), level)
    whole = next((data[key] for key in _WHOLE if _is_text(data.get(key))), None)
    if whole is not None:
        message = next(
            (data[key] for key in ("panic", "msg", "message", "error") if _is_text(data.get(key))),
            "",
        )
        yield level, f"panic: {message}" if data.get("panic") == message and message else whole
        if message and message not in whole:
            yield level, message
        return
    codes = (_code(data.get(key)) for key in _CODES)
    types = (str(data.get(key, "")) for key in _TYPES)
    code = next(filter(None, codes), "") or next(filter(_TYPE.fullmatch, types), "") or outer
    messages = {key: data[key] for key in (*_MESSAGES, *_REASONS) if _is_text(data.get(key))}
    chain = [
        next((messages[key] for key in keys if key in messages), "")
        for keys in (_MESSAGES, _REASONS)
    ]
    if all(chain) and "\n" not in "".join(chain) and chain[1] not in chain[0]:
        yield level, ": ".join(chain)
        data = {key: value for key, value in data.items() if key not in messages}
    for key, value in data.items():
        if isinstance(value, str) and str(key).lower() in _TEXTS and value.strip():
            coded = code and "\n" not in value.strip() and not value.startswith(code)
            yield level, f"error[{code}]: {value}" if coded else value
        elif isinstance(value, dict | list):
            if isinstance(value, list) and str(key).lower() in _TEXTS:
                yield from ((level, one) for one in value if isinstance(one, str) and one.strip())
            yield from _walked(value, depth + 1, level, code if key == "message" else "")


def _is_level(value: object) -> bool:
    return isinstance(value, str | int) and str(value).lower() in _MINOR | _ERRORS


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _code(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("code", "")
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        return ""
    return (
        "" if value.lower() in _MINOR | _ERRORS | {"object", "string", "suite", "test"} else value
    )


def _xml(text: str) -> Iterator[str]:
    """Failures of a JUnit report: their output, else their message."""
    for found in _XML.finditer(text):
        named = {
            one[1]: html.unescape(one[2] or one[3] or "") for one in _ATTRIBUTE.finditer(found[2])
        }
        end = -1 if found[3] else text.find(f"</{found[1]}>", found.end(), found.end() + 65_536)
        inner = html.unescape(text[found.end() : end]) if end >= 0 else ""
        inner = inner.strip().removeprefix("<![CDATA[").removesuffix("]]>").strip()
        message, kind = named.get("message", ""), named.get("type", "")
        if kind and message and not message.startswith(kind):
            message = f"{kind}: {message}"
        if message and message not in inner:
            yield message
        if inner:
            yield inner
