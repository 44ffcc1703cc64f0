"""Words that say nothing of which error it is.

``Process completed with exit code 1`` consists of them alone, so it names no error: whatever fails
ends with such a line. What else a line says tells how much it says.
"""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.error_text.words import RANK

_STOP_WORDS: Final = """
a an the this that these those it its is are was were be been being has have had do does did to
of in on at by for from with without into as and or not no nor if then than so but because due
after before during while when where which who what why how there here you your we our i my me
can could will would should may might must all any some one two more most other another again
also only just see use using via per up down out over under about above below please try tried
trying don doesn didn isn wasn couldn won aren ain hasn haven ve re ll
"""
STOP: Final = frozenset(_STOP_WORDS.split())

_GENERIC_WORDS: Final = """
error errors err errno failed failure failures
fail fails failing fatal exception exceptions unhandled
uncaught caught process processes subprocess completed complete exit exited exits exiting code
codes status returned return returns non nonzero zero command commands cmd job jobs task tasks
step steps stage stages phase run runs running ran execution execute executed executing build
building builds built compile compiled compiling compilation link linking linker target
targets goal goals recipe make makefile script scripts lifecycle elifecycle test tests testing
spec specs suite suites check checks lint linting abort aborted aborting stop stopped stopping
terminated ended end previous following occurred happened went wrong unsuccessful unsuccessfully
successfully success unsuccesful get got help hint note details detail info information full log
logs logfile output stdout stderr report reports summary result results stack trace stacktrace
backtrace debug verbose option options switch retry rerun line lines file files generated
emitted total passed skipped warning warnings problem problems issue issues error's project
projects module lib bin crate package packages wheel wheels metadata custom pyproject toml
service unit control main container pod deploy deployment publish release install installation
pipeline workflow action actions hook plugin runner worker workers child shell bash sh npm yarn
pnpm pip docker gradle maven mvn cargo go python node java tool tools webpack vite rollup
esbuild ansible terraform refs push pushed branch caused cause reason root unexpected
unexpectedly unknown something processing process's message messages number time times seconds
second ms minutes finished finish finishing done start started starting begin began invocation
invoke invoked called call via raised raise thrown throw throwing terminating operation
operations request requests attempt attempts most recent last first next further additional
thread panicked cannot unable ld collect recoverable core dumped application app
solve complete child exiting now deselected active since dependency likely probably itself
subcommand subcommands
"""
GENERIC: Final = frozenset(_GENERIC_WORDS.split())

_VERBS: Final = frozenset(
    ("required", "missing", "denied", "named", "called", "contains", "requires", "exists",
     "expected", "already", "needs", "loaded", "defined", "declared", "does", "such", "invalid",
     "unhealthy", "name", "names", "refused", "rejected", "ready", "available", "supported",
     "allowed", "permitted", "valid")
)  # fmt: skip
"""Behind the kind that they say something of; no names."""

_CODES: Final = re.compile(
    r"(?:code|status|exited with|signal)[ :=(]{0,3}-?(13[2-9]|14\d)\b"
    r"|(?:status(?: code)?|HTTP(?:/[\d.]+)?|code)[ :=(]{0,3}([45]\d\d)\b"
    r"|((?:[Ee]rrno|WinError|os error)[ :=]{0,3}\d\d+|SQLSTATE[ :=\[]{0,3}\w+)"
)
"""Numbers that name a cause: signals (POSIX: 128 + number), HTTP, errno."""

_STAND_IN: Final = re.compile(r"['\"`]?<\w+>['\"`]?")
_COUNT: Final = re.compile(r"\b\w+=<number>")
"""A field of a line of counts."""

_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_JOINT: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def telling_words(text: str) -> set[str]:
    """The words of a normalised text that tell which error it is; empty for a generic one."""
    bare = _STAND_IN.sub(" ", _COUNT.sub(" ", text))
    words = {word.casefold() for word in _WORD.findall(_JOINT.sub(" ", bare))}
    telling = {word for word in words if word not in STOP and word not in GENERIC}
    return telling | {found[0] for found in _CODES.finditer(text)}


def says_nothing(word: str) -> bool:
    """Whether it is a word of the language of messages and no name."""
    word = word.casefold()
    return word in STOP or word in GENERIC or word in _VERBS


_PROSE: Final = 4
"""Words of a text in quotes that is no name but a message."""


def is_prose(text: str) -> bool:
    """Whether a text in quotes is a message, of words of the language of messages."""
    words = _WORD.findall(text)
    known = sum(word.casefold() in RANK for word in words)
    return (
        " " in text
        and len(words) >= _PROSE
        and known >= _PROSE - 1
        and 2 * known >= len(words)
        and len(telling_words(text)) > 1
    )


def is_known(word: str) -> bool:
    """Whether it is a word of the language of messages."""
    return word.casefold() in RANK or says_nothing(word)
