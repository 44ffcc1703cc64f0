"""The reranker against a bare cross-encoder, in one process, taking turns.

    python -m tests.bench.rerank ROUNDS

prints seconds of each round as a JSON object, by name. The bare one is the same file on ONNX
Runtime, with no queue, no cache and no deadline. ``singly``: pair by pair on as many threads as
ours, which is what ours must do, since its scores may not depend on the other texts. ``batches``:
the fastest known way, one batch on each thread, which changes a logit by up to 0.45. No round
repeats a pair, so that nothing comes from the cache. All sessions have one thread, so that none
goes on spinning while the next is measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import uvloop
from tokenizers import Tokenizer

from lot_grpc.embedding.catalog import DEFAULT_RERANKER, reranker_card_of
from lot_grpc.embedding.model_files import locate_reranker
from lot_grpc.embedding.onnx_session import open_session
from lot_grpc.embedding.reranking import make_reranker
from lot_grpc.embedding.workers import usable_cores
from tests.bench import data

CANDIDATES = 20
_WARM_UP = 2


class _Bare:
    def __init__(self) -> None:
        files = locate_reranker(reranker_card_of(DEFAULT_RERANKER))
        self._tokenizer = Tokenizer.from_file(str(files.folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(files.card.max_tokens, strategy="only_second")
        self._session = open_session(files.folder / files.model_file)
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._cores = usable_cores()
        self._pool = ThreadPoolExecutor(self._cores)

    def singly(self, query: str, texts: Sequence[str]) -> list[float]:
        return self._scores(query, [[text] for text in texts])

    def batches(self, query: str, texts: Sequence[str]) -> list[float]:
        return self._scores(query, [texts[first :: self._cores] for first in range(self._cores)])

    def _scores(self, query: str, batches: Sequence[Sequence[str]]) -> list[float]:
        """Logits, batch by batch."""
        done = self._pool.map(lambda texts: self._run(query, texts), batches)
        return [score for scores in done for score in scores]

    def _run(self, query: str, texts: Sequence[str]) -> list[float]:
        pairs = self._tokenizer.encode_batch([(query, text) for text in texts])
        shape = len(pairs), max(len(pair.ids) for pair in pairs)
        given = {name: np.zeros(shape, dtype=np.int64) for name in self._inputs}
        for place, pair in enumerate(pairs):
            read = {
                "input_ids": pair.ids,
                "attention_mask": pair.attention_mask,
                "token_type_ids": pair.type_ids,
            }
            for name, rows in given.items():
                rows[place, : len(pair.ids)] = read[name]
        scores: list[float] = self._session.run(None, given)[0][:, 0].tolist()
        return scores


async def measure(rounds: int) -> dict[str, list[float]]:
    """Seconds of each round."""
    bare = _Bare()
    ways: dict[str, Any] = {"singly": bare.singly, "batches": bare.batches}
    reranker = make_reranker()
    await reranker.load()
    times: dict[str, list[float]] = {name: [] for name in ("ours", *ways)}
    for number in range(-_WARM_UP, rounds):
        first = (number + _WARM_UP) * 1000
        query = data.sentence(first)
        texts = [data.sentence(first + 7 * place) for place in range(1, CANDIDATES + 1)]
        for name in times:
            started = time.perf_counter()
            if name == "ours":
                scores = await reranker.score(query, texts, seconds=60)
            else:
                scores = ways[name](query, texts)
            seconds = time.perf_counter() - started
            if len(scores) != CANDIDATES or None in scores:
                raise RuntimeError(f"{name} did not score all")
            if number >= 0:
                times[name].append(seconds)
    await reranker.close()
    return times


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measure(int(sys.argv[1])))))
