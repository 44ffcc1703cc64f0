"""Run a command beside a server of its own: an empty store, a free port, gone afterwards.

    python clients/with_server.py [--cwd DIR] COMMAND [ARG ...]

The command finds the server at LOT_ADDRESS. Another one has TLS, at LOT_TEST_TLS_ADDRESS, and asks
for client certificates at LOT_TEST_TLS_CLIENT_ADDRESS. LOT_TEST_TLS_FOLDER has ca.pem, which
vouches for it, agent.pem and agent.key, which it accepts, and stranger.pem, which vouches for
nobody. The exit code is the command's, or 1 when a server did not start or did not stop cleanly.
Run it by the Python that has lot-grpc installed.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lot_grpc.testing.certificates import Authority

START_SECONDS = 120.0
STOP_SECONDS = 30.0
LOG_TAIL = 40

_START_LINE = re.compile(r"is serving on (\S+)(?: and, with client certificates, (\S+))?")


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
        with tempfile.TemporaryDirectory(prefix="lot-grpc-") as folder:
            tls = write_certificates(Path(folder))
            with running_server() as (address, _), running_server(tls) as (over_tls, with_client):
                found = {
                    "LOT_ADDRESS": address,
                    "LOT_TEST_TLS_ADDRESS": over_tls,
                    "LOT_TEST_TLS_CLIENT_ADDRESS": with_client,
                    "LOT_TEST_TLS_FOLDER": folder,
                }
                return run(command, found, options.cwd)
    except ServerError as error:
        sys.stderr.write(f"with_server: {error}\n")
        return 1


class ServerError(Exception):
    """The server did not start, or did not stop as it should. Says what its log says."""


def write_certificates(folder: Path) -> dict[str, str]:
    """Write what both sides of TLS need; the settings of the server."""
    authority = Authority()
    certificate, key = authority.issue("127.0.0.1", "localhost").write(folder, "server")
    authority.issue("spiffe://lot.test/agent").write(folder, "agent")
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "stranger.pem").write_bytes(Authority("a stranger").pem)
    return {
        "LOT_TLS_CERT": str(certificate),
        "LOT_TLS_KEY": str(key),
        "LOT_TLS_CLIENT_CA": str(folder / "ca.pem"),
        "LOT_TLS_CLIENT_ADDRESS": "127.0.0.1:0",
    }


@contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """A server on loopback with an empty store; its addresses. Stopped by SIGTERM at the end.

    The second address is empty unless the settings have one for client certificates.

    Raises:
        ServerError: It did not start, or left with another exit code than 0.
    """
    with tempfile.TemporaryDirectory(prefix="lot-grpc-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as stderr:
            server = subprocess.Popen(
                [sys.executable, "-m", "lot_grpc", "serve"],
                env=server_environment(Path(folder) / "data") | dict(settings or {}),
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


def wait_until_ready(server: subprocess.Popen[str], log: Path) -> tuple[str, str]:
    """The addresses on the start line.

    Raises:
        ServerError: It ended before, or took longer than START_SECONDS.
    """
    found: list[tuple[str, str]] = []
    told = threading.Event()
    assert server.stdout is not None
    threading.Thread(target=_read, args=(server.stdout, found, told), daemon=True).start()
    told.wait(START_SECONDS)
    if not found:
        raise ServerError(f"the server did not start\n{tail(log)}")
    return found[0]


def _read(stdout: IO[str], found: list[tuple[str, str]], told: threading.Event) -> None:
    """Watch for the start line, and keep the pipe empty after it."""
    for line in stdout:
        if not found and (match := _START_LINE.search(line)):
            found.append((match[1], match[2] or ""))
            told.set()
    told.set()


def run(command: list[str], found: Mapping[str, str], folder: Path | None) -> int:
    """Run the command to its end; signals reach it too, and the server outlives it."""
    environment = os.environ | dict(found)
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
