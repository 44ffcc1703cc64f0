"""Separates a line of an error into what identifies the error and what varies from case to case.

Omitted are paths and lines, addresses, ids, hashes, quoted names, versions, counts, durations, URLs
and ports. Kept are the names of built-in types (``'NoneType' object has no attribute …`` and
``'str' object has no attribute …`` are two errors) and numbers that name an error (``Errno 111``,
``status 404``).

The time is linear in the line: one pass, with an expression whose repetitions never compete for the
same characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lot_grpc.domain.error_text.vocabulary import is_known, is_prose, says_nothing

_NOTHING: Final = frozenset({"nil", "none", "nonetype", "null", "undefined"})
"""Types that are kept wherever they are quoted."""

_TYPES: Final = re.compile(
    "any|array|bigint|bool|boolean|bytes|char|coroutine|dict|double|f32|f64|float(?:16|32|64)?|frozenset|function"
    "|generator|i32|i64|u?int(?:8|16|32|64)?|integer|list|map|method|module|never|number|object|set|slice|str|string"
    "|symbol|tuple|type|u32|u64|unknown|usize|vec|void"
)
"""Types that are kept if the words next to them show it: keys and modules have such names too."""

_BEFORE_TYPES: Final = ("type ", "types ", "not ", "and ", "between ", "than ", "expected ", "got ")
_BEHIND_TYPES: Final = (" object", " and ", " instance", " type")

_FILES = (
    "bat c cc cfg class cpp cs css csv dll env exe go gz h hpp html ini jar java js json jsx key kt"
    " lock log md mjs cjs mod pem php pkl proto py pyc rb rs sh so sql sum swift tar tf toml ts tsx"
    " txt xml yaml yml zip pl pm hs ml ex exs erl jl lua dart scala clj kts vue svelte scss tex rst"
    " conf png jpg jpeg gif svg pdf mp4 bz2 xz tgz deb rpm"
).replace(" ", "|")

_UNITS = (
    "ms|milliseconds?|us|µs|ns|seconds?|secs?|s|minutes?|mins?|hours?|days?|bytes?|[kKMGT]i?B|%"
)

_PLACE = r"(?:[:(]\d+(?:[:,]\d+)*\)?)?"
"""Line and column after a path."""

_DRIVE = r"(?<!\w)[A-Za-z]:[\\/][^\s'\"`:;,()<>|]+"
_ROOTED = r"(?<![\w.~/-])(?:~|\.{1,2}|[\w@-][\w.@-]*)?/[^\s'\"`:;,()<>]+"
_FILE = rf"(?<![\w.@-])[\w@-][\w.@-]*\.(?:{_FILES}|{_FILES.upper()})\b(?:\.\d+)*"

_PARTS: Final = re.compile(
    "|".join(
        (
            r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s'\"`<>()\]]+)",
            r"(?P<quoted>(?<!\w)'[^'\n]+'(?!\w)|\"[^\"\n]+\"|`[^`'\n]+'(?!\w)|`[^`\n]+`"
            r"|\u2018[^\u2019\n]+\u2019|\u201c[^\u201d\n]+\u201d"
            r"|(?<=[a-z] )\[[a-zA-Z_][\w.-]*\]|(?<=[a-z])\{[a-z][\w*-]*\})",
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
            r"(?: code)?|status(?: code)?|HTTP(?:/\d(?:\.\d)?)?|code|signal)"
            r"[ :=]{0,3}-?\d{1,6}\b|\bSQLSTATE[ :=\[]{0,3}\w{1,6}\b|\b[A-Z]{2,6}-\d{3,6}\b)",
            r"(?P<requirement>(?<![\w@/.-])@?[A-Za-z][\w./-]*(?:\[[\w,-]*\])?"
            r"(?:[=~<>!^]=|[<>@](?=[\d^~v]))[\d^~v*][^\s,;)]*)",
            r"(?P<identifier>(?<![\w$=.:-])(?:[a-z]\w*_\w+|[a-z]+[0-9]\w*|[a-z]+(?:[A-Z][a-z0-9]+)+"
            r"|\d+[a-z]\w*::?\w+|[a-z0-9]+::[a-z0-9]+)(?![\w(=.:-]))",
            r"(?P<coordinates>(?<![\w:/])[\w.-]*(?::[A-Za-z][\w.-]*)+(?::\d[\w.-]*)?(?=[\s,;)]|$))",
            rf"(?P<number>(?<![\w.])[-+]?v?\d[\w.,]*(?:[-+][\w.]+)*(?: ?(?:{_UNITS})(?!\w))?)",
            r"(?P<dotted>(?<![\w.@/-])[a-z_][\w-]*(?:\.[a-z_][\w-]*)+\b(?![./(]))"
            r"|(?P<counted>(?<![\w-])[a-z]\w*(?:-[a-z]\w*)*-\d+(?:\.[\w+~.-]*\w)?(?![\w-]))",
            r"(?P<qualified>\b(?!javax?\.)[a-z_]\w*(?:\.[a-z_]\w*)+\.[A-Z][\w$]*(?:\.\w+)*)",
        )
    )
)

_MARKS: Final = re.compile("[\ue000-\uf8ff]")
"""Characters of the private use area; each is a placeholder for a part during the split."""

_M = "[\ue000-\uf8ff]"
_UNQUOTED: Final = tuple(
    (re.compile(rule), part, behind)
    for rule, part, behind in (
        (r"^(?P<part>[\w$.\[\]]+(?:\(\.\.\.\))?)"
         r"(?= is not (?:defined|a function|a constructor|iterable))", "name", ""),
        (r"(?<=undefined: )(?P<part>[\w.]+)$", "name", ""),
        (r"(?<=declared and not used: )(?P<part>\w+)$", "name", ""),
        (r"(?<=cannot find )(?P<part>-l\S+)", "name", ""),
        (r"(?<=^package )(?P<part>[\w.]+)(?= does not exist$)", "name", ""),
        (r"(?<=ENOTFOUND )(?P<part>[\w.-]+)$", "name", ""),
        (r"(?<=EAI_AGAIN )(?P<part>[\w.-]+)$", "name", ""),
        (r"(?<=^spawn )(?P<part>\S+)(?= E)", "name", ""),
        (r"(?<=^Failed to start )(?P<part>.*)$", "name", ""),
        (r"(?<=] )(?P<part>\S+ -> \S+)(?= \()", "name", ""),
        (r"(?<!\S)(?P<part>\S+)(?=: unbound variable$)", "name", ""),
        (rf"^(?:\S+: )?(?:line {_M}: |{_M}: )?(?P<part>[^\s:]+): command not found$",
         "name", ": command not found"),
        (rf"^\S+: {_M}: (?P<part>[^\s:]+): not found$", "name", ": command not found"),
        (r"^(?:\S+: )?command not found: (?P<part>\S+)$", "name", ": command not found"),
        (r"^(?:\S+: )*(?P<part>\S+)"
         r"(?=: (?:No such file or directory|Permission denied|Is a directory)$)", "path", ""),
        (r"^(?:\S+: )?permission denied: (?P<part>\S+)$", "path", ": Permission denied"),
    )
)  # fmt: skip
"""Names that shells, Go, pip and JavaScript do not quote: ``part`` is omitted, with everything else
that the rule matches; the replacement after it makes different shells equal."""

_LAST: Final = re.compile(
    r"^(?P<slot>.*(?:: | for | requirement ))(?P<part>-?[A-Za-z@$_][\w@$./-]*)$", re.DOTALL
)
"""One word at the end, which is a name if it is not in the vocabulary of messages."""

_ASIDE: Final = re.compile(
    r"[;,.?]? ?\(?[Dd]id you mean [^\n]*$|\.? Perhaps you forgot [^\n]*$"
    r"|, input_value=[^\n]*|; line \d+$"
    r"| -> \[Help \d+\]|(?:, [a-z]+: (?:\"[^\"\n]*\"|[^\s,]+)){2,}$"
    r"| \(from -r [^()\n]*\(line \d+\)\)| \(from versions: [^()\n]*\)"
)
"""Suggestions and additions of newer versions of tools."""

_SLOT: Final = re.compile(
    r"(?P<slot>\b(?:[Pp]ackage|[Mm]odule|[Pp]roject|[Ii]mage|[Cc]ontainer|[Uu]ser|[Tt]able|[Cc]olumn"
    r"|[Rr]elation|[Dd]atabase|[Rr]ole|[Hh]ost|[Oo]ption|[Cc]ommand|[Ll]ibrary|[Tt]arget|[Cc]rate|[Gg]em"
    r"|[Pp]od|[Pp]lugin|[Vv]olume|[Nn]etwork|[Bb]ranch|[Rr]epository|[Bb]ucket|[Qq]ueue|[Tt]opic"
    r"|[Ff]ixture|[Tt]ask) )(?P<part>[\w@$][\w@$./-]*)"
    r"(?= (?:is|was|does|do|has|had|not|in|of|from|for|to|on|at|with|already|cannot|could|must|by"
    r"|and|or)\b|[,;:)]|$)"
)
"""A noun followed by a name; the words after the name show that it is one."""

_FIRST_MARK: Final = 0xE000
_MOST_MARKS: Final = 6_000
_NAMES: Final = frozenset(
    {"qualified", "dotted", "counted", "coordinates", "requirement", "identifier"}
)
"""Signs that a word is a name."""
_VERSION: Final = re.compile(r"v\d[\w.+-]*|[-+]?\d+(?:\.\d+){2,}[\w.+-]*")
_PATH: Final = re.compile(rf"(?:{_DRIVE}|{_ROOTED}|{_FILE}){_PLACE}")
_IMPORTED: Final = re.compile(r"[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?:/[\w.-]+)+")
"""Go's import paths; no other path begins with a host name."""
_URL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,15}://\S+")
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*")

_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part that a signature omits: its kind, and its text."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class TakenApart:
    """A line without what varies from case to case, and the omitted parts in order."""

    text: str
    left_out: tuple[LeftOut, ...]


@lru_cache(1024)
def taken_apart(text: str) -> TakenApart:
    """Take a line apart. Lines with the same resulting text omit the same kinds of parts."""
    stands: list[tuple[str, LeftOut]] = []

    def mark(stand_in: str, left_out: LeftOut) -> str:
        stands.append((stand_in, left_out))
        return chr(_FIRST_MARK + len(stands) - 1)

    def leave_out(found: re.Match[str]) -> str:
        kind, whole = str(found.lastgroup), found[0]
        if kind == "identifier" and _TYPES.fullmatch(whole):
            return whole
        if kind == "code" or (kind == "quoted" and _says_which(found)):
            return whole
        if kind == "quoted" and is_prose(whole[1:-1]):
            return f"'{_PARTS.sub(leave_out, whole[1:-1])}'"
        if len(stands) >= _MOST_MARKS:
            return f"<{_stand_in(kind)}>"
        if kind == "quoted":
            return mark("'<name>'", _quoted(whole[1:-1]))  # tools change their quotes
        return mark(f"<{_stand_in(kind)}>", LeftOut(_part(kind, whole), whole))

    def name(found: re.Match[str]) -> str:
        if says_nothing(found["part"]) or len(stands) >= _MOST_MARKS:
            return found[0]
        return f"{found['slot']}{mark('<name>', LeftOut('name', found['part']))}"

    def written_out(made: str) -> str:
        return _MARKS.sub(lambda found: stands[ord(found[0]) - _FIRST_MARK][1].text, made)

    made = _PARTS.sub(leave_out, _MARKS.sub("\ufffd", _ASIDE.sub("", text)))
    made = _SLOT.sub(name, _SPACES.sub(" ", made).strip(" .:;,!"))
    if (last := _LAST.search(made)) and not is_known(last["part"]):
        made = name(last)
    for rule, part, behind in _UNQUOTED:
        if found := rule.search(made):
            one = mark(f"<{part}>", LeftOut(part, written_out(found["part"])))
            made = f"{made[: found.start()]}{one}{behind}{made[found.end() :]}"
    left = [stands[ord(one) - _FIRST_MARK] for one in _MARKS.findall(made)]
    rest = iter(left)
    return TakenApart(
        _MARKS.sub(lambda _: next(rest)[0], made), tuple(left_out for _, left_out in left)
    )


def _stand_in(kind: str) -> str:
    return "name" if kind in _NAMES else kind


def _part(kind: str, text: str) -> str:
    """The name of a part for callers."""
    if kind == "number" and _VERSION.fullmatch(text):
        return "version"
    if kind == "path" and _IMPORTED.fullmatch(text):
        return "name"
    return _stand_in(kind)


def _quoted(text: str) -> LeftOut:
    """The part for a quoted text; mostly a name."""
    for part, rule in (("url", _URL), ("path", _PATH), ("version", _VERSION), ("number", _NUMBER)):
        if rule.fullmatch(text):
            return LeftOut(part, text)
    return LeftOut("name", text)


def _says_which(quoted: re.Match[str]) -> bool:
    """Whether a quoted text identifies the error: a built-in type of a language."""
    name, whole = quoted[0][1:-1].casefold(), quoted.string
    if name in _NOTHING:
        return True
    start, end = quoted.span()
    return _TYPES.fullmatch(name) is not None and (
        whole[max(0, start - 10) : start].casefold().endswith(_BEFORE_TYPES)
        or whole[end : end + 10].startswith(_BEHIND_TYPES)
    )
