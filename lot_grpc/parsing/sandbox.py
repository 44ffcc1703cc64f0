"""Splits source text into pieces in a separate process, with limited memory and CPU time.

For some texts a parser needs excessive memory (unclosed generics in Java: 6 GB for 40 KB), and if
it gets none it aborts its process. No property of a text predicts this for every grammar, so no
text is parsed in the serving process.

The first text starts a helper (``python -m lot_grpc.parsing.helper``), which stays. It forks a
child for each text: the limits are the child's, and nothing of a text is left behind. The helper is
executed, not forked from the server, so it has none of its files, locks and threads. It ends when
its standard input closes, that is with the server, however that ends; a running child then ends at
its limits at the latest. Requests and responses are lines of JSON; pickles from a process that
reads hostile texts would be loaded with the server's privileges.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from lot_grpc.domain.code_shapes import CodeForm, CodePiece, ParsedCode
from lot_grpc.domain.errors import LimitExceededError, OverloadedError
from lot_grpc.domain.pattern import CodeKind
from lot_grpc.parsing.interface import OUT_OF_MEMORY

MAX_MEMORY_BYTES: Final = 512 * 2**20
"""Address space of the child; 1 MiB of ordinary code needs 200 MiB. Enforced on Linux only."""

MAX_CPU_SECONDS: Final = 5
"""CPU time for one text: 1 MiB of code takes up to 3 s, of noise up to 9 s."""

_PROCESSES: Final = "1 parser process"
"""The limit reported to callers when the helper cannot work: there is no other one."""

_NO_MEMORY: Final = {
    OUT_OF_MEMORY,
    -signal.SIGABRT,
    -signal.SIGBUS,
    -signal.SIGKILL,
    -signal.SIGSEGV,
}
"""How a child ends that ran out of memory, in Python or in a parser."""


class Sandbox:
    """The helper and the thread that communicates with it: one text is parsed at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lot-parsing")
        self._helper: subprocess.Popen[bytes] | None = None

    async def parse(self, code: str, language: str) -> ParsedCode:
        """``code.parse_code`` with limits.

        Raises:
            LimitExceededError: the text has too many pieces, or takes too much memory or time.
            OverloadedError: the helper could not be started, or was killed from outside.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._parse, code, language)

    def close(self) -> None:
        """End the helper and its current work. The next text starts another."""
        helper, self._helper = self._helper, None
        if helper is None:
            return
        if helper.returncode is None:
            os.killpg(helper.pid, signal.SIGKILL)
        with helper, suppress(BrokenPipeError):  # closes its pipes and waits
            pass

    def _parse(self, code: str, language: str) -> ParsedCode:
        request = {
            "code": code,
            "language": language,
            "bytes": MAX_MEMORY_BYTES,
            "seconds": MAX_CPU_SECONDS,
        }
        try:
            helper = self._running()
        except OSError as error:
            raise OverloadedError(
                f"the parser cannot start: {error}; retry later", limit=_PROCESSES
            ) from error
        assert helper.stdin is not None
        assert helper.stdout is not None
        line = b""
        with suppress(OSError, ValueError):  # ValueError: closed in the meantime
            helper.stdin.write(json.dumps(request).encode() + b"\n")
            helper.stdin.flush()
            line = helper.stdout.readline()
        if not line.endswith(b"\n"):
            self.close()
            raise OverloadedError("the parser process was killed; retry", limit=_PROCESSES)
        return _parsed(json.loads(line), language, len(code.encode()))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._helper is not None and self._helper.poll() is not None:
            self.close()
        if self._helper is None:
            self._helper = subprocess.Popen(
                [sys.executable, "-m", "lot_grpc.parsing.helper"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        return self._helper


SANDBOX: Final = Sandbox()
"""The sandbox of this process."""

atexit.register(SANDBOX.close)


def _parsed(answer: dict[str, Any], language: str, size: int) -> ParsedCode:
    if "pieces" in answer:
        return ParsedCode(tuple(map(_piece, answer["pieces"])), tuple(answer["unparsed"]))
    if "limit" in answer:
        raise LimitExceededError(answer["message"], **answer["limit"])
    ended = answer.get("ended")
    if ended in {-signal.SIGXCPU, -signal.SIGALRM}:
        most = f"{MAX_CPU_SECONDS} s of CPU time"
    elif ended in _NO_MEMORY:
        most = f"{MAX_MEMORY_BYTES // 2**20} MiB of memory"
    else:
        raise RuntimeError(f"the parser failed: {answer}")
    raise LimitExceededError(
        f"the code takes more than {most} to parse: it is not {language}, is broken or is nested "
        "too deeply; fix it or send it in smaller parts",
        limit=most,
        given=size,
    )


def _piece(fields: dict[str, Any]) -> CodePiece:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    kinds = {"form": CodeForm(fields["form"]), "kind": CodeKind(fields["kind"])}
    return CodePiece(**(fields | lists | kinds))
