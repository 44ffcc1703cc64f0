"""The service as an operator runs it: a process of its own, on a free port of loopback."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.forked import Forked
from tests.leaks import audit_files, leaks

ROOT = Path(__file__).parents[2]
PATIENCE = 240.0
"""Seconds to wait for a command, a start or a state: so long that only what hangs fails."""
_START_LINE = re.compile(r"is serving on (\S+)(?: and, with client certificates, (\S+))?")


def environment(data: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without the caller's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOT_")}
    base = {"LOT_ADDRESS": "127.0.0.1:0", "LOT_DATA_DIR": str(data), "LOT_LOG_FORMAT": "json"}
    return kept | base | dict(settings or {})


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lot_grpc", *arguments]


@dataclass
class Ran:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def errors(self) -> str:
        """What was said to the operator, without the log."""
        return "".join(
            line for line in self.stderr.splitlines(keepends=True) if not line.startswith("{")
        )


def run(
    data: Path,
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    seconds: float = PATIENCE,
) -> Ran:
    """Run ``lot-grpc`` with arguments to its end."""
    running = Forked(arguments, env=environment(data, settings), cwd=ROOT)
    stdout, stderr = running.communicate(seconds)
    assert running.returncode is not None
    return Ran(running.returncode, stdout, stderr)


@dataclass
class Served:
    """A running ``lot-grpc serve``. Ended by its own process id only."""

    process: Forked
    log: Path
    data: Path
    address: str = ""
    client_address: str = ""
    lines: list[str] = field(default_factory=list)
    audit: Path | None = None
    """Its audit log, if that is a file."""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def logs(self) -> list[Path]:
        """The server's log, and its audit log with rotated files."""
        return [self.log, *(audit_files(self.audit) if self.audit else [])]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self._look_for_leaks()

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self._look_for_leaks()
        return code

    def _look_for_leaks(self) -> None:
        """No server may have logged credentials, whatever a test did with it."""
        assert not (found := leaks(self.logs)), f"credentials in the logs: {found}"

    def logged(self) -> str:
        return self.log.read_text(errors="replace")


def serve(
    data: Path, log: Path, settings: Mapping[str, str] | None = None, *arguments: str
) -> Served:
    """Start the service and wait until it says that it serves."""
    process = Forked(["serve", *arguments], env=environment(data, settings), cwd=ROOT, stderr=log)
    audit = (settings or {}).get("LOT_AUDIT", "")
    served = Served(process, log, data, audit=Path(audit) if audit else None)
    told = threading.Event()
    threading.Thread(target=_read, args=(process.stdout, served, told), daemon=True).start()
    try:
        told.wait(PATIENCE)
    except BaseException:  # Ctrl-C: nobody else knows the process yet
        process.kill()
        raise
    if not served.address:
        process.kill()
        process.wait(PATIENCE)
        pytest.fail(f"the service did not start:\n{served.logged()[-4000:]}")
    return served


def _read(stdout: IO[str], served: Served, told: threading.Event) -> None:
    """Watch for the start line, and keep the pipe empty after it."""
    with stdout:
        for line in stdout:
            served.lines.append(line)
            if match := _START_LINE.search(line):
                served.address, served.client_address = match[1], match[2] or ""
                told.set()
    told.set()


def paths_below(folder: Path) -> list[Path]:
    """What is there while a server writes: ``glob`` raises if a folder goes meanwhile."""
    return [
        Path(parent, name)
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    ]


def wait_for(condition, seconds: float = PATIENCE) -> None:
    """Wait until ``condition()`` holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"it did not come to that within {seconds:g} s")
        time.sleep(0.01)
