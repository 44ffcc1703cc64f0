"""The signature of an error: its type and message without what differs from case to case.

Left out are paths and lines, addresses, ids, hashes, quoted names, versions, counts, durations,
urls and ports. What is left says which error it is, so that the same error at another place, of
another machine or with another name has the same signature. Two missing modules share one: what
differs is in the messages themselves.

Kept are the names of types that languages build in (``'NoneType' object has no attribute …`` and
``'str' object has no attribute …`` are two errors), and numbers that name an error (``Errno 111``,
``status 404``, ``E0382``).

The time is linear in the message: one pass over one line, with an expression whose repetitions
never compete for the same characters.
"""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.error_headline import headline_of
from lot_grpc.domain.ids import content_hash

VERSION: Final = 1
"""Raised whenever a rule changes: signatures begin with it, and those of another one are made anew
from the messages, which are stored as they came."""

_LONGEST = 400
"""Characters of a signature. Of a longer one the rest is hashed."""

_NOTHING: Final = frozenset({"nil", "none", "nonetype", "null", "undefined"})
"""Kept wherever they stand in quotes."""

_TYPES: Final = re.compile(
    "any|array|bigint|bool|boolean|bytes|char|coroutine|dict|double|f32|f64|float|frozenset|function"
    "|generator|i32|i64|int|integer|list|map|method|module|never|number|object|set|slice|str|string"
    "|symbol|tuple|type|u32|u64|unknown|usize|vec|void"
)
"""Kept where the words beside them say that they are types: a key or a module may be named so."""

_BEFORE_TYPES: Final = ("type ", "types ", "not ", "and ", "between ", "than ", "expected ", "got ")
_BEHIND_TYPES: Final = (" object", " and ", " instance", " type")

_FILES = (
    "bat c cc cfg class cpp cs css csv dll env exe go gz h hpp html ini jar java js json jsx key kt"
    " lock log md mjs cjs mod pem php pkl proto py pyc rb rs sh so sql sum swift tar tf toml ts tsx"
    " txt xml yaml yml zip"
).replace(" ", "|")

_UNITS = (
    "ms|milliseconds?|us|µs|ns|seconds?|secs?|s|minutes?|mins?|hours?|days?|bytes?|[kKMGT]i?B|%"
)

_PLACE = r"(?:[:(]\d+(?:[:,]\d+)*\)?)?"
"""Line and column behind a path."""

_DRIVE = r"(?<!\w)[A-Za-z]:[\\/][^\s'\"`:;,()<>|]+"
_ROOTED = r"(?<![\w.~/-])(?:~|\.{1,2}|[\w@-][\w.@-]*)?/[^\s'\"`:;,()<>]+"
_FILE = rf"(?<![\w.@-])[\w@-][\w.@-]*\.(?:{_FILES})\b"

_PARTS: Final = re.compile(
    "|".join(
        (
            r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s'\"`<>()\]]+)",
            r"(?P<quoted>(?<!\w)'[^'\n]+'(?!\w)|\"[^\"\n]+\"|`[^`\n]+`"
            r"|\u2018[^\u2019\n]+\u2019|\u201c[^\u201d\n]+\u201d)",
            r"(?P<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
            r"(?:Z|[+-]\d\d:?\d\d)?)?\b)",
            r"(?P<id>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
            r"|\b(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,64}\b)",
            r"(?P<address>@?\b0x[0-9a-fA-F]+\b|@[0-9a-f]{2,16}\b"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"
            r"|\[[0-9a-fA-F:]*:[0-9a-fA-F:.]*\](?::\d{1,5})?|(?<!\S)::1?(?::\d{1,5})?(?!\S)"
            r"|\blocalhost(?::\d{1,5})?\b"
            r"|(?<![\w.-])[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+:\d{2,5}\b)",
            rf"(?P<path>(?:{_DRIVE}|{_ROOTED}|{_FILE}){_PLACE})",
            r"(?P<code>\b(?:Errno|errno|WinError|os error|exit (?:code|status)|exited with"
            r"(?: code)?|status(?: code)?|HTTP(?:/\d(?:\.\d)?)?|code|signal|SQLSTATE)"
            r"[ :=]{0,3}-?\d{1,6}\b)",
            rf"(?P<number>(?<![\w.])[-+]?v?\d[\w.,]*(?:[-+][\w.]+)*(?: ?(?:{_UNITS})(?!\w))?)",
            r"(?P<qualified>\b(?!javax?\.)[a-z_]\w*(?:\.[a-z_]\w*)+\.[A-Z][\w$]*)",
        )
    )
)

_UNQUOTED: Final = tuple(
    (re.compile(rule), made)
    for rule, made in (
        (r"^[\w$.\[\]]+(\(\.\.\.\))? is not (?=defined|a function|a constructor|iterable)",
         "<name> is not "),
        (r"(?<=undefined: )[\w.]+$", "<name>"),
        (r"(?<=ENOTFOUND )[\w.-]+$", "<name>"),
        (r"(?<=EAI_AGAIN )[\w.-]+$", "<name>"),
        (r"^spawn \S+(?= E)", "spawn <name>"),
        (r"(?:\S+: )?(?:line <number>: |<number>: )?\S+: (?=(?:command )?not found$)", "<name>: "),
        (r"(?<=command not found: )\S+$", "<name>"),
        (r"^(?:\S+: )*\S+: (?=(?:No such file or directory|Permission denied|Is a directory)$)",
         "<path>: "),
    )
)  # fmt: skip
"""Names that shells, Go and JavaScript do not quote."""

_ANY: Final = frozenset({"Error", "Exception", "error", "exception"})
"""Types that say nothing; what the message names is better."""

_SPACES = re.compile(r"\s+")


def signature_of(error_type: str, message: str) -> str:
    """The signature of an error, never empty: ``1:Type: message``.

    ``error_type`` may be empty: then it is what the message names. Of a qualified name
    (``asyncio.exceptions.TimeoutError``, ``java.net.ConnectException``) the last part counts.
    """
    headline = headline_of(message)
    given, named = short_type(error_type), short_type(headline.type)
    if given in _ANY and named:
        given = named
    text = headline.text
    if given and named and given != named:
        text = f"{named}: {text}"
    elif given and not named:
        head, colon, rest = text.partition(":")
        if short_type(head) == given and (colon or head == text):
            text = rest
    kind = given or named
    made = normalised(text)
    whole = f"{kind}: {made}" if kind and made else kind or made
    if len(whole) > _LONGEST:
        whole = f"{whole[:_LONGEST]}…{content_hash(whole[_LONGEST:])[:12]}"
    return f"{VERSION}:{whole}"


def short_type(error_type: str) -> str:
    """The last part of a qualified name of a type."""
    return error_type.strip().replace("::", ".").replace("/", ".").rpartition(".")[2]


def normalised(text: str) -> str:
    """One line without what differs from case to case."""
    made = _SPACES.sub(" ", _PARTS.sub(_stand_in, text)).strip(" .:;,")
    for rule, stand_in in _UNQUOTED:
        made = rule.sub(stand_in, made)
    return made


def _stand_in(found: re.Match[str]) -> str:
    kind = str(found.lastgroup)
    text = found[0]
    if kind == "quoted":
        return text if _says_which(found) else f"{text[0]}<name>{text[-1]}"
    if kind == "code":
        return text
    return {"qualified": "<name>", "time": "<time>"}.get(kind, f"<{kind}>")


def _says_which(quoted: re.Match[str]) -> bool:
    """Whether what is quoted says which error it is: a type that a language builds in."""
    name, whole = quoted[0][1:-1].casefold(), quoted.string
    if name in _NOTHING:
        return True
    start, end = quoted.span()
    return _TYPES.fullmatch(name) is not None and (
        whole[max(0, start - 10) : start].casefold().endswith(_BEFORE_TYPES)
        or whole[end : end + 10].startswith(_BEHIND_TYPES)
    )
