"""A proxy before the server that loses connections and answers on demand."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import threading
import time
from types import TracebackType
from typing import Self

BETWEEN_LOSS_AND_CUT = 0.5
"""Seconds for the server to finish what it was asked, while its answer is lost."""


class Cutter:
    """Forwards bytes, in threads, so that it serves tests of both clients."""

    def __init__(self, target: str) -> None:
        self.aim(target)
        self._away = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lose = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self.connections = 0
        self.address = "{}:{}".format(*self._listener.getsockname())

    def aim(self, target: str) -> None:
        """Forward to this address from the next connection on."""
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))

    def go_away(self) -> None:
        """Cut, and refuse connections until `come_back`."""
        self._away.set()
        self.cut()

    def come_back(self) -> None:
        """Take connections again."""
        self._away.clear()

    def cut(self) -> None:
        """End all connections at once, both sides."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def lose_next_answer(self) -> None:
        """Let the next request through, lose what the server says to it, then cut."""
        self._lose.set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._away.is_set():
                    raise ConnectionRefusedError
                pair = (near, socket.create_connection(self._target))
            except OSError:
                near.close()
                continue
            self.connections += 1
            self._pairs.append(pair)
            thread = threading.Thread(target=self._forward, args=pair)
            self._threads.append(thread)
            thread.start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        cut_at = math.inf
        with near, far, contextlib.suppress(OSError):
            while (left := cut_at - time.monotonic()) > 0:
                for ready in select.select([near, far], [], [], min(left, 60.0))[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is near and self._lose.is_set():
                        self._lose.clear()
                        cut_at = time.monotonic() + BETWEEN_LOSS_AND_CUT
                    if ready is near:
                        far.sendall(data)
                    elif cut_at == math.inf:
                        near.sendall(data)
