"""The embedding model that every peer is given: the service's, called in the quickest known way.

Runs in the environment of the peers, which has ONNX Runtime and tokenizers and nothing of ours.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Tokenizer

_MAX_TOKENS = 512


class Model:
    """Text in, unit vector out. Safe to share between threads.

    ``known`` are vectors of texts that are stored or searched for before or after the measurements,
    by role and text, so that filling a store takes no minutes.
    """

    def __init__(self, file: Path, prefix: str) -> None:
        self.known: dict[tuple[str, str], list[float]] = {}
        self.clients = 1
        """How many embed at once: one text has all cores to itself, of several each has one."""
        self._prefix = prefix
        self._tokenizer: Any = Tokenizer.from_file(str(file.with_name("tokenizer.json")))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._alone = _session(file, os.cpu_count() or 1)
        self._beside_others = _session(file, 1)

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
        session = self._alone if self.clients == 1 else self._beside_others
        vector: NDArray[np.float32] = session.run(None, given)[0][0, 0]
        return vector / np.linalg.norm(vector)


def _session(file: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
