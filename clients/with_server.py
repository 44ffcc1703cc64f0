"""Run a command beside a server of its own: an empty store, a free port, gone afterwards.

    python clients/with_server.py [--cwd DIR] COMMAND [ARG ...]

The command finds the server at LOT_ADDRESS. The exit code is the command's, or 1 when the server
did not start or did not stop cleanly. Run it by the Python that has lot-grpc installed.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

START_SECONDS = 120.0
STOP_SECONDS = 30.0
LOG_TAIL = 40

_START_LINE = re.compile(r"is serving on (\S+)")


def main() -> int:
    """Start the server, run the command, stop the server."""
    parser = argparse.ArgumentParser(description="Run a command beside a lot-grpc server.")
    parser.add_argument("--cwd", type=Path, help="folder to run the command in")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given")
    try:
        with running_server() as address:
            return run(command, address, options.cwd)
    except ServerError as error:
        sys.stderr.write(f"with_server: {error}\n")
        return 1


class ServerError(Exception):
    """The server did not start, or did not stop as it should. Says what its log says."""


@contextmanager
def running_server() -> Iterator[str]:
    """A server on loopback with an empty store; its address. Stopped by SIGTERM at the end.

    Raises:
        ServerError: It did not start, or left with another exit code than 0.
    """
    with tempfile.TemporaryDirectory(prefix="lot-grpc-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as stderr:
            server = subprocess.Popen(
                [sys.executable, "-m", "lot_grpc", "serve"],
                env=server_environment(Path(folder) / "data"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,  # a second signal, from the terminal, would end it at once
            )
        try:
            yield wait_until_ready(server, log)
        finally:
            code = stop(server)
        if code != 0:
            raise ServerError(f"the server left with exit code {code}\n{tail(log)}")


def server_environment(data: Path) -> dict[str, str]:
    """This environment, with the caller's settings left out but for where the model is."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LOT_") or name.startswith("LOT_EMBEDDING_")
    }
    return kept | {"LOT_ADDRESS": "127.0.0.1:0", "LOT_DATA_DIR": str(data)}


def wait_until_ready(server: subprocess.Popen[str], log: Path) -> str:
    """The address on the start line.

    Raises:
        ServerError: It ended before, or took longer than START_SECONDS.
    """
    found: list[str] = []
    told = threading.Event()
    assert server.stdout is not None
    threading.Thread(target=_read, args=(server.stdout, found, told), daemon=True).start()
    told.wait(START_SECONDS)
    if not found:
        raise ServerError(f"the server did not start\n{tail(log)}")
    return found[0]


def _read(stdout: IO[str], found: list[str], told: threading.Event) -> None:
    """Watch for the start line, and keep the pipe empty after it."""
    for line in stdout:
        if not found and (match := _START_LINE.search(line)):
            found.append(match[1])
            told.set()
    told.set()


def run(command: list[str], address: str, folder: Path | None) -> int:
    """Run the command to its end; signals reach it too, and the server outlives it."""
    environment = os.environ | {"LOT_ADDRESS": address}
    try:
        child = subprocess.Popen(command, env=environment, cwd=folder)  # noqa: S603 - the caller's
    except OSError as error:
        sys.stderr.write(f"with_server: {command[0]}: {error.strerror}\n")
        return 127
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command as well
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    return code if code >= 0 else 128 - code


def stop(server: subprocess.Popen[str]) -> int:
    """Ask the server to stop, by force after STOP_SECONDS; its exit code."""
    server.terminate()
    try:
        return server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


def tail(log: Path) -> str:
    """The last lines of the server's log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL:])


if __name__ == "__main__":
    sys.exit(main())
