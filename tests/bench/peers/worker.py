"""One peer in a process of its own, in the environment of the peers.

    python -m tests.bench.peers.worker NAME FOLDER

FOLDER has what it stores and searches for (``tests.bench.peers.given``). Reads one
JSON command a line and answers each with one JSON line, as ``tests.bench.load`` does; nothing goes
over the network.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.peers.adapters import PEERS, Peer, Where
from tests.bench.peers.model import Model

_BATCH = 500
LIMIT = 5


class Worker:
    def __init__(self, name: str, folder: Path) -> None:
        given = _read(folder / "model.json")
        self._model = Model(Path(given["file"]), given["prefix"])
        self._folder = folder
        self._new = _read(folder / "new.json")
        self._queries = _read(folder / "queries.json")
        self._peer: Peer = PEERS[name](folder / f"peer-{os.getpid()}", self._model)

    def about(self) -> dict[str, Any]:
        peer = self._peer
        return {"version": peer.version, "durable": peer.durable, "threads": peer.threads}

    def fill(self, file: str) -> dict[str, Any]:
        """Store what is in a file, whose vectors are known."""
        vectors = np.load(self._folder / f"{file}-known.npy").tolist()
        roles = map(tuple, _read(self._folder / f"{file}-known.json"))
        self._model.known = dict(zip(roles, vectors, strict=True))
        items = _read(self._folder / f"{file}.json")
        for start in range(0, len(items), _BATCH):
            self._peer.store(items[start : start + _BATCH])
        self._peer.tidy()
        return {}

    def store(self, first: int, count: int, clients: int, seconds: float) -> dict[str, Any]:
        items = self._new[first : first + count]
        done = self._timed(lambda item: self._peer.store([item]), items, clients, seconds)
        self._peer.tidy()
        return done

    def recall(self, first: int, count: int, clients: int, seconds: float) -> dict[str, Any]:
        queries = self._queries[first : first + count]
        return self._timed(lambda one: self._recall(*one), queries, clients, seconds)

    def answers(self, queries: list[tuple[str, Where]], limit: int = LIMIT) -> dict[str, Any]:
        return {"ids": [self._recall(query, where, limit) for query, where in queries]}

    def _recall(self, query: str, where: Where, limit: int = LIMIT) -> list[str]:
        return self._peer.recall(query, where, limit)

    def _timed(
        self, call: Callable[[Any], Any], given: Sequence[Any], clients: int, seconds: float
    ) -> dict[str, Any]:
        """Carry out what there is, or what can be begun in time; how long each and all took."""
        self._model.ready_for(clients)
        waiting, times = deque(given), deque[float]()
        started = time.perf_counter()

        def client() -> None:
            while time.perf_counter() - started < seconds:
                try:
                    one = waiting.popleft()
                except IndexError:
                    return
                begun = time.perf_counter()
                call(one)
                times.append(time.perf_counter() - begun)

        if clients == 1:
            client()
        else:
            with ThreadPoolExecutor(clients) as pool:
                for future in [pool.submit(client) for _ in range(clients)]:
                    future.result()
        return {"times": list(times), "seconds": time.perf_counter() - started}


def _read(file: Path) -> Any:
    return json.loads(file.read_text())


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: whatever would leave this machine fails."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in ("localhost", "127.0.0.1", "::1"):
        raise PermissionError(f"a peer tried to reach {host}")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    sys.addaudithook(_stay_here)
    worker = Worker(sys.argv[1], Path(sys.argv[2]))
    for line in sys.stdin:
        command = json.loads(line)
        result = getattr(worker, command.pop("do"))(**command)
        print(json.dumps(result), file=answers, flush=True)
    os._exit(0)  # threads of a library may not end


if __name__ == "__main__":
    main()
