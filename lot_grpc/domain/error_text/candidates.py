"""Classifies one line of an error message, and scores it.

Every rule reads a line from its beginning and none looks more than a few lines ahead, so that the
time is linear in the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.error_text.line import CODED, THREAD, TYPED, Headline, typed
from lot_grpc.domain.error_text.parts import taken_apart
from lot_grpc.domain.error_text.tools import with_symbol
from lot_grpc.domain.error_text.vocabulary import telling_words

TRACE: Final = 5.0
TOOL: Final = 4.5
ERROR: Final = 4.0
MARKED: Final = 3.2
PROSE: Final = 2.0
WARNING: Final = 1.0
NOTE: Final = 0.8
ANY: Final = 0.0
"""The score of a line by its type: the end of a trace, the report of a build tool, a typed or coded
error, a line marked as an error, prose that says that something failed, a warning, a note, any
other line."""

_WRAPPED: Final = 60
"""A line may have been wrapped from this many characters on."""

_FRAME = re.compile(
    r"[ \t]*at \S+.*[:(]|[ \t]+at \S|goroutine \d|[ \t]+\.\.\. \d+ more|[ \t]*File \""
)
_MARGIN = re.compile(
    r"(?:E {3,})?[ \t]*(?:[\u2500-\u257f|>*\u2022\u25cf\u25cb\u2716\u2717\u2718\u00d7"
    r"\u2a2f\u274c\u279c\u2192!-]{1,3}"
    r"[ \t]+)*[ \t]*"
)
_PLACE = re.compile(
    r"(?:vet: |ERROR in |ERROR: )?(?:[A-Za-z]:)?[\w./\\@-]*[\w@-]\.[A-Za-z]\w{0,5}"
    r"(?:[:(]\d+(?:[:,]\d+)*\)?)(?::| -|:in [`'][^`'\n]{1,200}':)? (?=\S)"
)
_COLUMN = re.compile(r"\d+:\d+ {1,8}(error|warning|\u2716|\u26a0) +(?=\S)")
"""ESLint's lines below the name of a file."""

_RULE_BEHIND = re.compile(r"(?: {2}|\s\[)(@?[a-z][\w/-]*(?:-[\w/-]+)?)\]?$")
"""The name of a rule at the end of a line: ESLint, mypy, pylint."""

_LINT = re.compile(r"([A-Z]{1,4}\d{2,5})(?: \[\*\])?:? (?=\S)")
_LEVEL = (
    r"(?:ERROR|FATAL|CRITICAL|SEVERE|EMERG(?:ENCY)?|ALERT|PANIC|Error|Fatal|error|fatal|critical"
    r"|severe|emerg|alert|crit)"
)
_LEVELLED = re.compile(
    rf"(?:\[\d{{1,7}}\] )?(?:[\w./-]{{1,60}}: )?\[?(?:{_LEVEL})(?: +(?:error|ERROR)|:error)?"
    rf"(?:\]|\(s\))?(?:(?=[:\t\])])|(?<=[A-Z]{{2}})(?= )|(?=  )| (?=[A-Z][a-z])|$)"
    r"(?: (?:in|at) [^\s:]+(?= |:|$))?[:\] \t-]*(?:\d+ --- )?(?:\[[^\]]{1,60}\] ?)*"
    r"(?:[\w.$]+ +[:-] )?"
)
_LOGGER = re.compile(
    rf"(?:[\w.]{{1,60}} - )?{_LEVEL}(?: - |:[\w.]+:| \[[^\]]*\] (?:[\w.$]+ [:-] )?)(?=\S)"
)
_WARN = re.compile(
    r"[^\n]{0,60}?"
    r"(?:\b(?:[Ww]arn(?:ing)?s?|WARN(?:ING)?|npm (?:WARN|warn)|Deprecat\w+|\w*Warning)\b"
    r"(?:[:\](]| in | -|\s+\w)|\bdeprecated\b)"
)
_HINT = re.compile(
    r"[ =]*(?:N(?=: )|note|hint|help|Hint|Note|Help|tip|INFO|DEBUG|info|debug|Info"
    r"|For more information|See|Run|It's likely|Try|Make sure|You (?:can|may|might)|Please|If you"
    r"|This (?:is|may|can)|Did you|Consider)\b(?:: ?)?"
)
_PROGRAM = re.compile(r"\S*/[\w.-]+: (?=\S)")
_COMMAND = re.compile(
    r"(?:\$|PS [^>]{0,200}>|C:\\[^>]{0,200}>|[\w.-]+@[\w.-]+[: ][^$#%]{0,200}[$#%]"
    r"|\u276f|\u279c|%|#) (?=\S)"
)
_MAKE = re.compile(r"\w{0,5}make(?:\[\d+\])?: \*\*\* ")
_RECIPE = re.compile(r"\w{0,5}make(?:\[\d+\])?: \*\*\* \[.*\] Error \d|\([\w ]+\)$")
_EVENT = re.compile(
    r"(?:\S+ +)?(Normal|Warning) +([A-Z]\w+) +(?:\d\w* +)?(?:\(x\d+ over \w+\) +)?\S+ +(?=\S)"
)
"""An event of Kubernetes: kind, reason, age, source."""

_CAPITALS = re.compile(r"[A-Z]{4,}(?: \([^)]{1,40}\))?: (?=\S)")
_SUMMARY = re.compile(
    r"[^\n]{0,200}\b(?:due to|because of|see|after|with|had|has|contains?)"
    r"(?: (?:previous|above|earlier|other|following|some|these|the|\d+))* errors?\b"
    r"|Errors? (?:occurred|encountered)\b"
)
"""A line that only says that there are errors, which are elsewhere."""

_COUNT_OF_ERRORS = re.compile(
    r"(?:Found )?\d+ (?:errors?|warnings?|problems?|issues?|failures?)"
    r"(?: found| generated)?(?: \([^)\n]{0,80}\))?\.?$"
)
_HEADING_START = re.compile(r"\W?[\u2550\u2500\u2501=_*-]{2}")
_HEADING_END = re.compile(r"[\u2550\u2500\u2501=_*-]{5}")
"""The drawn lines around a heading."""

_HEADING_END_LENGTH = 5
_OF_TYPE = re.compile(r"[A-Z]\w+ error \((\w+)\) at ")
"""Clojure: the next line says what is wrong."""

_LISTED = re.compile(r"\d{1,2}[.)] ")
"""An item of a numbered list: possible reasons, or what to do."""

_JOIN_WORDS: Final = """
a an and as at be because been but by for from had has have if in into is not of on or since
than that the to was were when which while with within without
"""
_JOINS: Final = frozenset(_JOIN_WORDS.split())
"""Words that do not end a sentence; a line that ends with one continues on the next."""

_SHELL = re.compile(
    r"(?:\S+: )?(?:line \d+: |\d+: )?[^\s:]+: (?:command )?not found$|\S+: command not found: \S+$"
    r"|(?:\S+: )*\S+: (?:No such file or directory|Permission denied)$"
)
_FAILS = re.compile(
    r"\b(?:cannot|can ?not|can't|could ?n[o']t|couldn't|unable to|not found|no such|not exist\w*"
    r"|denied|refused|reject\w*|invalid|missing|unknown|unrecognized|unsupported|not supported"
    r"|unexpected|undefined|undeclared|unresolved|fail\w*|error\w*|timed out|timeout|exceed\w*"
    r"|too \w+|conflict\w*|mismatch\w*|expected|required"
    r"|not (?:allowed|permitted|defined|installed|available|valid|match\w*|assignable|satisf\w*"
    r"|a \w+)|no (?:matching|space|module|route|package|version)|already (?:in use|exists)"
    r"|unauthorized|forbidden|insufficient|corrupt\w*|crash\w*|killed"
    r"|out of (?:memory|range|bounds|disk)|segmentation|overflow\w*|deadlock|abort\w*|violat\w*"
    r"|incompatible|malformed|expired|unreachable|lost|broken|does ?n[o']t|doesn't|didn't|did not"
    r"|is not|was not|are not|won't|isn't|must|should|oom\w*|panic\w*|unhealthy|rate limit\w*"
    r"|quota|ha(?:s|ve) no|already been|exhausted|duplicate\w*|ambiguous|destroyed|unsatisf\w*"
    r"|untrusted|interrupted|locked|immutable|inconsistent|illegal|wrong|blocked)\b",
    re.IGNORECASE,
)
_RPC = re.compile(r"rpc error: code = \w+ desc = ")
_CALLED = re.compile(r"\S+:\d+: in (?:\S+|main chunk|function \S+)$|(?:FAILED|ERROR) \S+(?:::| - )")
"""A frame of the short traces of pytest and Lua, and a line of pytest's summary."""

_ALONE = re.compile(
    r"(?:Killed|OOMKilled|[A-Z][a-z]+(?:[A-Z][a-z]+){2,}|E[A-Z]{4,}|[A-Z]{2,}(?:_[A-Z]+)+)$"
)
_SAYS = re.compile(r"[^\W\d_]{2}")
_CODE_LINE = re.compile(
    r"[\s>|\d]*(?:[{}();\[\],=]*$|(?:import|from|def|class|return|let|const|var|func|fn|use|raise"
    r"|throw|if|for)\b(?![^\n]*: \S))"
)
_CODE_ALONE = re.compile(r"\[?([A-Z]{1,6}-?\d{2,6})\]?:?")
_SEVERAL = re.compile(r"[\w'\"`]\S* \S")
ONE_WORD = re.compile(r"[\w.$/\[\]@-]+[:,]?$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may name the error."""

    headline: Headline
    counts: float


def candidate(line: str, behind: Sequence[str]) -> Candidate | None:
    """Classify a line; ``behind`` are the next ones. None if it cannot name the error."""
    bare = line[_MARGIN.match(line).end() :]  # type: ignore[union-attr]  # matches ""
    if (
        not bare
        or (_HEADING_START.match(line) and _HEADING_END.fullmatch(line[-_HEADING_END_LENGTH:]))
        or _COMMAND.match(bare)
        or _FRAME.match(line)
        or _CALLED.match(bare)
        or _COUNT_OF_ERRORS.match(bare)
        or _RECIPE.match(bare)
        or (not _SAYS.search(bare) and not _ALONE.match(bare))
    ):
        return None
    bare = _sentence_of(bare, behind)
    if _SUMMARY.match(bare):
        return Candidate(typed(bare), NOTE)
    if (found := _OF_TYPE.match(bare)) and behind:
        return Candidate(Headline(found[1], behind[0].strip()), ERROR)
    if found := _EVENT.match(bare):
        if found[1] == "Normal":
            return None
        return Candidate(Headline(found[2], bare[found.end() :]), MARKED)
    counts, placed = ANY, False
    if found := _COLUMN.match(bare):
        counts, placed = (ERROR if found[1] in ("error", "\u2716") else WARNING), True
        bare = bare[found.end() :]
    elif found := _PLACE.match(bare):
        counts, placed = MARKED, True
        bare = bare[found.end() :]
    if placed and (found := _RULE_BEHIND.search(bare)) and not CODED.match(f"{bare}"):
        return Candidate(
            Headline(found[1], bare[: found.start()]), counts if counts != MARKED else ERROR
        )
    if _WARN.match(bare) and not (TYPED.match(bare) and "Error" in bare.partition(":")[0]):
        return Candidate(typed(bare), WARNING)
    if found := _HINT.match(bare):
        rest = bare[found.end() :]
        if not _SHELL.match(rest) and not _PROGRAM.match(rest):
            return Candidate(Headline("", bare), NOTE)
        bare = rest
    if found := _RPC.search(bare):
        return Candidate(Headline("", bare[found.end() :]), ERROR)
    if placed and (found := _LINT.match(bare)):
        return Candidate(Headline(found[1], bare[found.end() :]), ERROR)
    if THREAD.match(bare) or TYPED.match(bare):
        headline = announced(with_symbol(typed(bare), behind), behind)
        return Candidate(
            headline, ERROR if headline.type not in ("Error", "Exception") else ERROR - 0.2
        )
    if CODED.match(bare):
        headline = typed(bare)
        if placed and (found := _RULE_BEHIND.search(headline.text)):
            headline = Headline(headline.type or found[1], headline.text[: found.start()])
        return Candidate(_continued(headline, behind), ERROR)
    if found := _MAKE.match(bare) or _LOGGER.match(bare) or _LEVELLED.match(bare):
        headline = typed(bare[found.end() :]) if bare[found.end() :] else Headline("", bare)
        return Candidate(_continued(headline, behind), MARKED)
    if _SHELL.match(bare):
        return Candidate(typed(bare), MARKED)
    headline = _continued(with_symbol(typed(bare), behind), behind)
    if headline.type:
        return Candidate(headline, MARKED)
    if fails := _FAILS.search(bare) is not None:
        counts = MARKED if placed or _CAPITALS.match(bare) else max(counts, PROSE)
    if fails or placed or _ALONE.match(bare):
        counts = counts if fails else PROSE
        return Candidate(headline, counts if not _CODE_LINE.match(line) else NOTE)
    return Candidate(headline, ANY) if not ONE_WORD.match(bare) else None


def _sentence_of(line: str, behind: Sequence[str]) -> str:
    """A line with the next ones if it stops in the middle of a sentence."""
    for more in behind:
        more = more.strip()
        if line.rpartition(" ")[2] not in _JOINS or not more[:1].islower() or _FRAME.match(more):
            break
        line = f"{line} {more}"
    return line


def _unwrapped(line: str, behind: Sequence[str]) -> str:
    """A line with the lines that continue its sentence."""
    for more in behind:
        more = more.strip()
        if len(line) < _WRAPPED or line[-1] in ".:;!?)" or not more[:1].islower():
            break
        line = f"{line} {more}"
    return line


def _continued(headline: Headline, behind: Sequence[str]) -> Headline:
    """The headline with the next line, if it only announces that."""
    text = headline.text.rstrip()
    if behind and (code := _CODE_ALONE.fullmatch(text)):
        return Headline(headline.type or code[1], _MARGIN.sub("", behind[0], count=1).strip())
    if not text.endswith(":") or not behind or _LISTED.match(behind[0].strip()):
        return headline
    more = _unwrapped(_MARGIN.sub("", behind[0], count=1).strip(), behind[1:])
    if not telling_words(taken_apart(text).text):
        return typed(more) if not headline.type else Headline(headline.type, more)
    return Headline(headline.type, f"{text} {more}")


def announced(headline: Headline, behind: Sequence[str]) -> Headline:
    """The headline with the next line, if it ends in a colon and the line does not list names."""
    text = headline.text.rstrip()
    more = behind[0].strip() if behind else ""
    if not text.endswith(":") or not _SEVERAL.match(more) or _LISTED.match(more):
        return headline
    return Headline(headline.type, f"{text} {more}")
