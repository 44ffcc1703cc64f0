"""Logging: our own lines and those of libraries, as JSON or for a human, always to stderr.

Contents of memories are never logged. Our own lines only have counts and ids; the guard here
catches mistakes, and cuts the messages of foreign exceptions, which quote their input.
"""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from lot_grpc.redaction import SecretFinder, read_rules

MAX_EXCEPTION_TEXT = 200
"""Characters kept of the message of a foreign exception."""

_MASK = "********"

_CONTENTS = frozenset(
    [
        "actions",
        "code",
        "content",
        "context",
        "data",
        "details",
        "embedding",
        "error_message",
        "error_solution",
        "event_data",
        "lesson",
        "memory",
        "message_text",
        "metadata",
        "note",
        "pattern",
        "payload",
        "payloads",
        "prompt_text",
        "query",
        "request",
        "resolution",
        "response",
        "steps",
        "summary",
        "task",
        "text",
        "texts",
        "title",
        "value",
        "vector",
        "vectors",
    ]
)
_SECRET = re.compile(
    r"(^|_)(api_?key|authorization|bearer|cookie|credentials?|passphrase|password|private_?key|"
    r"secret|(access|auth|refresh|id)_token)$|^token$",
    re.IGNORECASE,
)

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_CHATTY = [
    "asyncio",
    "fastembed",
    "filelock",
    "grpc",
    "h2",
    "hpack",
    "httpcore",
    "httpx",
    "huggingface_hub",
    "qdrant_client",
    "urllib3",
]


REPEATS_SECONDS: Final = 60.0
"""How long identical failures are counted rather than reported."""


class Repeats:
    """Distinguishes the first of identical failures from its repeats within a minute.

    ``summarize`` is called with the key and the number of repeats once the minute is over, on the
    next failure of any kind or by ``end``.
    """

    def __init__(
        self,
        summarize: Callable[[tuple[str, ...], int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._summarize = summarize
        self._clock = clock
        self._begun: dict[tuple[str, ...], float] = {}  # oldest first
        self._more: dict[tuple[str, ...], int] = {}

    def is_first(self, key: tuple[str, ...]) -> bool:
        """Whether to report a failure; repeats are only counted."""
        now = self._clock()
        self.end(now - REPEATS_SECONDS)
        if key in self._begun:
            self._more[key] += 1
            return False
        self._begun[key], self._more[key] = now, 0
        return True

    def end(self, begun_before: float = float("inf")) -> None:
        """Summarize failures that began before then; by default all."""
        while self._begun:
            key, begun = next(iter(self._begun.items()))
            if begun > begun_before:
                return
            del self._begun[key]
            if more := self._more.pop(key):
                self._summarize(key, more)


def cause_of(error: BaseException) -> str:
    """The cause of an error in one short line; empty if it has none."""
    cause = error.__cause__
    if cause is None:
        return ""
    text = " ".join(str(cause).split())
    more = f"… ({len(text) - MAX_EXCEPTION_TEXT} more omitted)"
    cut = text[:MAX_EXCEPTION_TEXT] + (more if len(text) > MAX_EXCEPTION_TEXT else "")
    return f"{type(cause).__name__}: {cut}"


def place_of(error: BaseException) -> str:
    """The type of an error and the line that raised it; identifies repeats of a bug."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""
    return f"{type(error).__name__}{where}"


class _Stderr:
    """Whatever ``sys.stderr`` is when a line is written, so that a progress bar can wrap it."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_STDERR: TextIO = _Stderr()  # type: ignore[assignment]


def configure_logging(level: str, format: str, *, secrets: Sequence[str] = ()) -> None:
    """Set up structlog and the standard library's logging, replacing what was set up before.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``. Libraries stay at ``warning``, since
            their finer lines carry headers and bodies.
        format: ``json``, ``console``, or ``auto`` for console on a terminal.
        secrets: Texts masked wherever they appear. Empty ones are ignored.
    """
    number = _LEVELS[level]
    human = format == "console" or (format == "auto" and sys.stderr.isatty())
    shared = _shared_processors([secret for secret in secrets if secret], human=human)
    renderer = _renderer(human=human)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=_STDERR),
        cache_logger_on_first_use=False,
    )
    _configure_stdlib(number, shared, renderer)


def _shared_processors(secrets: Sequence[str], *, human: bool) -> list[Processor]:
    """The steps of every line, ours or a library's, in order."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_format_exception),
        _without_contents,
        _Masking(secrets),
        *([] if human else [structlog.processors.EventRenamer("message")]),
    ]


def _renderer(*, human: bool) -> Processor:
    if human:
        return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    return structlog.processors.JSONRenderer()


def _configure_stdlib(level: int, shared: list[Processor], renderer: Processor) -> None:
    handler = logging.StreamHandler(_STDERR)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(capture=True)


def _without_contents(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """Omit values that belong to callers, and give their size."""
    for key in _CONTENTS.intersection(line):
        value = line[key]
        size = f"{len(value)} " if isinstance(value, str | bytes | list | tuple | dict) else ""
        line[key] = f"<{size}left out>"
    return line


class _Masking:
    """Masks values of keys that name secrets, and known secrets wherever they appear.

    What the redaction rules of this package find is redacted, too: in texts of libraries and of
    exceptions, which nobody here chose.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = tuple(sorted(secrets, key=len, reverse=True))
        self._finder = SecretFinder(read_rules())

    def __call__(self, _: WrappedLogger, __: str, line: EventDict) -> EventDict:
        found = self._finder.may_find(
            "\n".join(map(str, line.values())).encode(errors="surrogatepass")
        )
        for key, value in line.items():
            if _SECRET.search(key):
                line[key] = _MASK
            elif self._secrets or found:
                line[key] = self._masked(value)
        return line

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, _MASK)
            return self._finder.redact(value)[0]
        if isinstance(value, dict):
            return {key: self._masked(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        return value


def _format_exception(exc_info: ExcInfo) -> str:
    """The traceback with each exception's message cut, outermost cause first as Python has it."""
    formatted = traceback.TracebackException(*exc_info, capture_locals=False)
    return "".join(_cut(line) for line in formatted.format()).rstrip()


def _cut(line: str) -> str:
    """Shorten an exception's own text; the lines of frames are source code and stay."""
    if line.startswith(("  File ", "Traceback ", "\n")) or len(line) <= MAX_EXCEPTION_TEXT:
        return line
    return f"{line[:MAX_EXCEPTION_TEXT]}… ({len(line) - MAX_EXCEPTION_TEXT} more omitted)\n"
