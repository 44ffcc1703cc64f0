"""Runs one peer in its own process, in the environment of the peers.

    python -m tests.bench.peers.worker NAME FOLDER

FOLDER has the items and queries (``tests.bench.peers.inputs``). Reads one JSON command per line and
answers each with one line of JSON, as ``tests.bench.load`` does.
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
        """Store the items of a file, whose vectors are known."""
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
        """Make the calls that can begin in time; return how long each and all of them took."""
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
    """An audit hook that refuses connections to other hosts. It does not see native code."""
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
    os.dup2(2, 1)  # so that output of libraries is not taken for an answer
    sys.addaudithook(_stay_here)
    worker = Worker(sys.argv[1], Path(sys.argv[2]))
    for line in sys.stdin:
        command = json.loads(line)
        result = getattr(worker, command.pop("do"))(**command)
        print(json.dumps(result), file=answers, flush=True)
    os._exit(0)  # threads of libraries may never end


if __name__ == "__main__":
    main()
