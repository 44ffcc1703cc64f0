"""The process that parses for ``sandbox``; the only one that loads tree-sitter and the grammars.

    python -m lot_grpc.parsing.helper

Reads requests from its standard input and writes responses to its standard output, both as lines of
JSON, until its input ends. It forks a child for each text.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import Any, Final, NoReturn

from lot_grpc.domain.errors import LimitExceededError
from lot_grpc.parsing.code import parse_code
from lot_grpc.parsing.interface import OUT_OF_MEMORY

_MAX_SECONDS: Final = 30
"""Wall-clock time for one text, in case the machine is short of CPU."""


def _serve() -> None:
    """Fork a child for each line, and answer for children that end without an answer."""
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            _answer(line)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended:
            _write(_line({"ended": ended}))


def _answer(line: bytes) -> NoReturn:
    """The child: parse within the limits, write one line, end."""
    ended = 1
    try:
        request = json.loads(line)
        signal.alarm(_MAX_SECONDS)
        _limit(resource.RLIMIT_CPU, request["seconds"])
        if sys.platform == "linux":
            _limit(resource.RLIMIT_AS, request["bytes"])
        answer = _line(_pieces(request["code"], request["language"]))
        signal.alarm(0)  # do not interrupt a line that is being written
        _limit(resource.RLIMIT_CPU, 2 * _MAX_SECONDS)
        _write(answer)
        ended = 0
    except MemoryError:
        ended = OUT_OF_MEMORY
    finally:
        os._exit(ended)


def _pieces(code: str, language: str) -> dict[str, Any]:
    try:
        return asdict(parse_code(code, language))
    except LimitExceededError as error:
        return {"message": error.message, "limit": dict(error.metadata)}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - reported to the server, without the code
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at is not None else ""
        return {"fault": f"{type(error).__name__} at {where}"}


def _limit(what: int, most: int) -> None:
    """Lower a soft limit."""
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(what, (most, hard))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # sent to the whole process group: the helper ends with the server
    # No core dumps, which would contain the code; 1 also suppresses those piped to a handler.
    _limit(resource.RLIMIT_CORE, 1)
    _serve()
