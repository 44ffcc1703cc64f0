"""The processes of a soak: the server on one port and one folder, and the clients. Ended by pid."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.e2e.process import ROOT, Served, serve
from tests.soak import journal
from tests.soak.journal import Entry


class Server:
    """`lot-grpc serve` as it is stopped, killed and started again; one of these at a time.

    Attributes:
        kills, stops: how many there were.
        wrong: what it did that it should not.
    """

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self._data = folder / "data"
        self.log = folder / "server.log"
        self._served: Served | None = None
        self._lock = threading.Lock()
        self._over = False
        self.kills = self.stops = 0
        self.wrong: list[str] = []

    @property
    def pid(self) -> int:
        """0: it is down."""
        served = self._served
        return served.process.pid if served is not None else 0

    def start(self) -> None:
        """Start it, and wait until it serves."""
        with self._lock:
            if not self._over:
                settings = {"LOT_ADDRESS": f"127.0.0.1:{self.port}"}
                self._served = serve(self._data, self.log, settings)

    def stop(self) -> None:
        """SIGTERM; it has to end by itself, with 0."""
        with self._lock:
            served, self._served = self._served, None
            if served is None:
                return
            self.stops += 1
            try:
                code = served.stop()
            except subprocess.TimeoutExpired:
                served.kill()
                self.wrong.append("the server did not end within 60 s of SIGTERM")
            else:
                if code:
                    self.wrong.append(f"the server ended with {code} after SIGTERM")

    def kill(self) -> None:
        """SIGKILL."""
        with self._lock:
            served, self._served = self._served, None
            if served is not None:
                self.kills += 1
                served.kill()

    def end(self) -> None:
        """End it by force, also one that is just being started, and start none any more."""
        with self._lock:
            self._over = True
            if self._served is not None:
                self._served.kill()

    def check_alive(self) -> None:
        """It dies only when we end it."""
        served = self._served
        if served is not None and served.process.poll() is not None:
            self._served = None
            self.wrong.append(f"the server died by itself ({served.process.returncode})")

    def logged_errors(self) -> list[str]:
        """What it logged as an error: nothing that clients do is one."""
        return logged_errors(self.log.read_text(errors="replace"))


def logged_errors(text: str) -> list[str]:
    """Lines of a log that tell of errors, and what is no line of a log but a traceback."""
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            if line.startswith(("Traceback", "Fatal")) or " panicked at " in line:
                found.append(line)
            continue
        if entry.get("level") in {"error", "critical"}:
            found.append(line[:500])
    return found


class Client:
    """A client that is killed and started again.

    Attributes:
        kills: how many there were.
    """

    def __init__(self, role: str, name: str, address: str, folder: Path, seed: int) -> None:
        self.role, self.name = role, name
        self._address, self._folder, self._seed = address, folder, seed
        self._log = folder / f"{name}.log"
        self._child: subprocess.Popen[bytes] | None = None
        self.kills = self._lives = 0

    @property
    def running(self) -> bool:
        """It is, and was not seen to end."""
        return self._child is not None and self._child.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, or was killed by us."""
        return self._child.poll() if self._child is not None else None

    def start(self) -> None:
        """One more life."""
        self._lives += 1
        seed = random.Random(f"{self._seed}/{self.name}/{self._lives}").randrange(2**32)
        arguments = [self.role, self.name, self._address, str(self._folder), str(seed)]
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.client", *arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> bool:
        """SIGKILL. False: it had ended by itself."""
        if not self.running:
            return False
        self.kills += 1
        self.end()
        return True

    def end(self) -> None:
        """By force, without counting it."""
        if self._child is not None:
            if self._child.poll() is None:
                self._child.send_signal(signal.SIGKILL)
                self._child.wait(30)
            self._child = None

    def entries(self) -> list[Entry]:
        """What its journal says."""
        path = self._folder / f"{self.name}.journal"
        return journal.read(path) if path.exists() else []

    def tail(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
