"""``lot-grpc`` in a process of its own, forked from one that has the product's modules imported.

To the tests it is what ``subprocess.Popen`` gives: a process with its own id, signals, output and
exit code. It only does not import everything again, which takes about half of a start.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["lot_grpc.cli.serve", "lot_grpc.cli.watch", "lot_grpc.app", "fastembed"]
)


class Forked:
    """A running command. Its standard input is empty."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stderr: Path | None = None,
    ) -> None:
        """Start it. ``stderr`` is a file to append to; without one, it is to be read here."""
        readers, writers = zip(*(_CONTEXT.Pipe(duplex=False) for _ in range(2)), strict=True)
        self._process = _CONTEXT.Process(
            target=_run, args=(list(arguments), dict(env), cwd, *writers, stderr), daemon=False
        )
        self._process.start()
        for writer in writers:
            writer.close()
        self.stdout, self.stderr = (_reading(reader) for reader in readers)
        if stderr is not None:
            self.stderr.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; what it said on standard output and standard error."""
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as pool:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except BaseException:
                self.kill()  # so that the pipes end
                raise
            return said[0].result(), said[1].result()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _reading(connection: Connection) -> IO[str]:
    stream = os.fdopen(os.dup(connection.fileno()))
    connection.close()
    return stream


def _run(
    arguments: list[str],
    env: dict[str, str],
    cwd: Path,
    stdout: Connection,
    stderr: Connection,
    log: Path | None,
) -> None:
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    os.dup2(stdout.fileno(), 1)
    if log is None:
        os.dup2(stderr.fileno(), 2)
    else:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
    stdout.close()
    stderr.close()
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, closefd=False)  # noqa: SIM115
    sys.argv = ["lot-grpc", *arguments]
    tempfile.tempdir = None  # that of the environment
    from lot_grpc.cli import main

    main()
