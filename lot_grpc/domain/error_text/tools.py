"""Output of test runners and build tools: which of their lines names the error.

Each reader gets the lines of a message, trimmed on the right, none empty, and returns the headline,
or None if the output is not from its tool. All read the lines once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from lot_grpc.domain.error_text.line import TYPED, Headline, typed

Reader: TypeAlias = Callable[[Sequence[str]], Headline | None]

_PYTEST = re.compile(r"E {3,}(?=\S)")
_PYTEST_SUMMARY = re.compile(r"(?:FAILED|ERROR) \S+ - (?=\S)")
_PYTEST_MARKS = re.compile(r"=+ (?:test session starts|FAILURES|ERRORS|short test summary info) =+")
_ASSERT = "assert "

_GO_TEST = re.compile(r"[ \t]+[\w.-]+_test\.go:\d+: (?=\S)")
_GO_FAILED = re.compile(r"[ \t]*--- FAIL: ")

_MAVEN = re.compile(r"\[(?:ERROR|INFO|WARNING)\] ?")
_MAVEN_PLACE = re.compile(r"\S.*\.(?:java|kt|scala|groovy):\[\d+(?:,\d+)?\] (?:error: )?(?=\S)")
_MAVEN_AROUND = re.compile(r"COMPILATION ERROR|Tests run:|-+$|Failures:|Errors:|$|.* <<< ")
_SYMBOL = re.compile(r"[ \t]*symbol:[ \t]+(\w+)[ \t]+(\S.*)")

_JEST = re.compile(r"[ \t]*\u25cf \S")

_NPM = re.compile(r"npm (?:ERR!|error) (?=\S)")
_NPM_CODE = re.compile(r"code (\w+)$")
_NPM_AROUND = re.compile(r"(?:code|errno|syscall|path|command|dest|signal) ")


def pytest_error(lines: Sequence[str]) -> Headline | None:
    """The error of the last failure of a pytest run: the first of its ``E`` lines with a type.

    A failed assertion that names no type is an AssertionError.
    """
    raised = _last_block(lines)
    if raised:
        return _asserted(next((line for line in raised if TYPED.match(line)), raised[0]))
    if not any(_PYTEST_MARKS.match(line) for line in lines):
        return None
    matches = [line[found.end() :] for line in lines if (found := _PYTEST_SUMMARY.match(line))]
    return _asserted(matches[-1]) if matches else None


def _last_block(lines: Sequence[str]) -> list[str]:
    """The last block of ``E`` lines, without their mark."""
    block: list[str] = []
    for line in reversed(lines):
        if found := _PYTEST.match(line):
            block.append(line[found.end() :])
        elif block:
            break
    return block[::-1]


def _asserted(line: str) -> Headline:
    return Headline("AssertionError", line) if line.startswith(_ASSERT) else typed(line)


def go_test_error(lines: Sequence[str]) -> Headline | None:
    """The last message of the last failed test of a ``go test``."""
    if not any(_GO_FAILED.match(line) for line in lines):
        return None
    for line in reversed(lines):
        if found := _GO_TEST.match(line):
            return typed(line[found.end() :])
    return None


def maven_error(lines: Sequence[str]) -> Headline | None:
    """The first error of a Maven build: in a file, else an exception, else Maven's message."""
    if sum(_MAVEN.match(line) is not None for line in lines) < 2:
        return None
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    for number, line in enumerate(lines):
        bare = _MAVEN.sub("", line, count=1)
        if found := _MAVEN_PLACE.match(bare):
            return with_symbol(Headline("", bare[found.end() :]), lines[number + 1 :])
    for line in lines:
        if not _MAVEN.match(line) and TYPED.match(line):
            return typed(line)
    matches = next((line for line in errors if not _MAVEN_AROUND.match(line)), "")
    return typed(matches) if matches else None


def with_symbol(headline: Headline, behind: Sequence[str]) -> Headline:
    """Add the symbol that Java cannot find, which it names on a later line."""
    if headline.text != "cannot find symbol":
        return headline
    for line in behind[:6]:
        if found := _SYMBOL.match(_MAVEN.sub("", line, count=1)):
            return Headline(headline.type, f"{headline.text}: {found[1]} '{found[2]}'")
    return headline


def jest_error(lines: Sequence[str]) -> Headline | None:
    """The text below the first test that Jest marks."""
    for number, line in enumerate(lines[:-1]):
        if _JEST.match(line):
            return typed(lines[number + 1])
    return None


def npm_error(lines: Sequence[str]) -> Headline | None:
    """The message that npm prints after its code, with the code as the type."""
    matches = [line[found.end() :] for line in lines if (found := _NPM.match(line))]
    code = next((found[1] for line in matches if (found := _NPM_CODE.match(line))), "")
    message = next((line for line in matches if not _NPM_AROUND.match(line)), "")
    if not code and not message:
        return None
    return Headline(code, message.removeprefix(f"{code} ")) if code else typed(message)


READERS: Final[tuple[Reader, ...]] = (
    pytest_error,
    go_test_error,
    jest_error,
    npm_error,
)
"""Readers that run before the search for traces, which such output may also contain."""
