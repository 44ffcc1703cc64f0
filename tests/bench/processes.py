"""The processes of a run: the real server, the bare one, the client. Each ends with its block."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

START_SECONDS = 180.0
ANSWER_SECONDS = 240.0
STOP_SECONDS = 30.0

_START_LINE = re.compile(r"is serving on (\S+)")


class BenchError(Exception):
    """A process did not do as it should. Says which, and the end of its log."""


class Process:
    """A child of ours with its log in a file; its standard output is read line by line."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: dict[str, str],
        python: str = sys.executable,
    ) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as stderr:
            self._child = subprocess.Popen(
                [python, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment,
                start_new_session=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        assert self._child.stdout is not None
        threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def write(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()

    def line(self, seconds: float) -> str:
        """The next line of its output."""
        try:
            found = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise self.failed(f"said nothing for {seconds:g} s") from None
        if not found:
            raise self.failed("ended")
        return found

    def failed(self, how: str) -> BenchError:
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        return BenchError(f"the {self.name} {how}\n{tail}")

    def end(self) -> None:
        """Ask it to stop; by force if it takes too long."""
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put("")


class Server:
    """A server that is ready. ``start_seconds``: from the start of its process."""

    def __init__(self, process: Process, address: str, start_seconds: float) -> None:
        self._process = process
        self.address = address
        self.start_seconds = start_seconds

    @property
    def resident_bytes(self) -> int:
        """Its memory in RAM, files that it has mapped included."""
        ps = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        return int(subprocess.run(ps, check=True, capture_output=True, text=True).stdout) * 1024

    @property
    def anonymous_bytes(self) -> int:
        """The part of it that the kernel cannot drop and read again; 0 where that is not told."""
        return self._status("RssAnon")

    @property
    def file_bytes(self) -> int:
        """Resident bytes of mapped files, including files on tmpfs; 0 as above."""
        return self._status("RssFile") + self._status("RssShmem")

    def _status(self, key: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status")
        found = (
            re.search(rf"^{key}:\s+(\d+) kB", status.read_text(), re.MULTILINE)
            if (status.exists())
            else None
        )
        return int(found[1]) * 1024 if found else 0


class Client:
    """The process that makes the calls."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def do(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Have it carry out a command of ``tests.bench.load``."""
        self._process.write(json.dumps({"do": name, **arguments}))
        answer: dict[str, Any] = json.loads(self._process.line(ANSWER_SECONDS))
        return answer


@contextmanager
def real_server(folder: Path, log: Path, **settings: str) -> Iterator[Server]:
    """``lot-grpc serve`` with default settings but for its port, its folder and ``settings``."""
    environment = {
        "LOT_ADDRESS": "127.0.0.1:0",
        "LOT_DATA_DIR": str(folder),
        **settings,
    }
    with _serving("real server", ["-m", "lot_grpc", "serve"], log, environment) as server:
        yield server


@contextmanager
def bare_server(folder: Path, log: Path) -> Iterator[Server]:
    """The bare server on a store of its own."""
    with _serving("bare server", ["-m", "tests.bench.bare", str(folder)], log, {}) as server:
        yield server


@contextmanager
def client(log: Path) -> Iterator[Client]:
    """The client."""
    with worker("client", ["-m", "tests.bench.load"], log) as process:
        yield process


@contextmanager
def worker(
    name: str, command: Sequence[str], log: Path, python: str = sys.executable, **settings: str
) -> Iterator[Client]:
    """Start a process that carries out commands, with the interpreter ``python``."""
    process = Process(name, command, log, _environment(settings), python)
    try:
        yield Client(process)
    finally:
        process.end()


def opening_seconds(folder: Path, log: Path) -> float:
    """How long a process takes that only loads the model and opens the store, from its start."""
    started = time.perf_counter()
    process = Process("opening", ["-m", "tests.bench.opening", str(folder)], log, _environment({}))
    try:
        process.line(START_SECONDS)
        return time.perf_counter() - started
    finally:
        process.end()


def run(module: str, *arguments: str, seconds: float = ANSWER_SECONDS) -> Any:
    """What a module prints as JSON, run by itself, within so many seconds."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=_environment({})
    )
    if done.returncode != 0:
        raise BenchError(f"{module} failed\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


@contextmanager
def _serving(
    name: str, command: Sequence[str], log: Path, settings: dict[str, str]
) -> Iterator[Server]:
    started = time.perf_counter()
    process = Process(name, command, log, _environment(settings))
    try:
        while not (found := _START_LINE.search(process.line(START_SECONDS))):
            pass
        yield Server(process, found[1], time.perf_counter() - started)
    finally:
        process.end()


def _environment(settings: dict[str, str]) -> dict[str, str]:
    """This one, with the caller's settings left out but for where the model is."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LOT_") or name.startswith("LOT_EMBEDDING_")
    }
    return kept | settings
