"""The embedding model of all peers: that of the service, called in the fastest known way.

Runs in the environment of the peers, which has ONNX Runtime and tokenizers, but not lot-grpc.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Tokenizer

_MAX_TOKENS = 512
_TRIES = 9
_TRIED = "a sentence of ordinary length, as agents store it, to see how long one takes"


class Model:
    """Turns a text into a unit vector. Safe to share between threads.

    ``known`` holds precomputed vectors by role and text, for texts that are stored or searched for
    outside the measurements, so that filling a store does not take minutes.
    """

    def __init__(self, file: Path, prefix: str) -> None:
        self.known: dict[tuple[str, str], list[float]] = {}
        self._prefix = prefix
        self._tokenizer: Any = Tokenizer.from_file(str(file.with_name("tokenizer.json")))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._one_core = _session(file, 1)
        self._all_cores = _session(file, os.cpu_count() or 1)
        self._session = self._one_core

    def ready_for(self, clients: int) -> None:
        """Choose the faster session: one thread per text for several clients, else by measuring."""
        sessions = [self._one_core] if clients > 1 else [self._one_core, self._all_cores]
        taken: dict[int, float] = {}
        for number, self._session in enumerate(sessions):
            times = []
            for _ in range(_TRIES):
                started = time.perf_counter()
                self.encode(_TRIED)
                times.append(time.perf_counter() - started)
            taken[number] = statistics.median(times)
        self._session = sessions[min(taken, key=taken.__getitem__)]

    def query(self, text: str) -> list[float]:
        """The vector to search with."""
        return self.known.get(("query", text)) or self.encode(self._prefix + text).tolist()

    def document(self, text: str) -> list[float]:
        """The vector to store."""
        return self.known.get(("document", text)) or self.encode(text).tolist()

    def encode(self, text: str) -> NDArray[np.float32]:
        """The vector of a text as it stands."""
        tokens = self._tokenizer.encode(text)
        given = {
            "input_ids": np.array([tokens.ids], np.int64),
            "attention_mask": np.array([tokens.attention_mask], np.int64),
            "token_type_ids": np.zeros((1, len(tokens.ids)), np.int64),
        }
        vector: NDArray[np.float32] = self._session.run(None, given)[0][0, 0]
        return vector / np.linalg.norm(vector)


def _session(file: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
