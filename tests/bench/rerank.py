"""The reranker against a bare cross-encoder, in one process, taking turns.

    python -m tests.bench.rerank ROUNDS

prints seconds of each round as a JSON object, by name. The bare one is fastembed's
``TextCrossEncoder`` on the same file, all texts in one call, with one ONNX thread and with one a
core. No round repeats a pair, so that nothing comes from the cache.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import uvloop

from lot_grpc.embedding.catalog import DEFAULT_RERANKER, reranker_card_of
from lot_grpc.embedding.model_files import locate_reranker
from lot_grpc.embedding.reranking import make_reranker
from lot_grpc.embedding.workers import usable_cores
from tests.bench import data

CANDIDATES = 20
_WARM_UP = 2
_PAUSE = 0.02
"""Seconds between two: the bare one's ONNX threads spin on for a while after a call."""


def _bare() -> dict[str, Any]:
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    files = locate_reranker(reranker_card_of(DEFAULT_RERANKER))
    name = "lot-grpc-bench/reranker"
    TextCrossEncoder.add_custom_model(name, ModelSource(hf=name), model_file=files.model_file)
    return {
        f"bare, ONNX threads: {threads}": TextCrossEncoder(
            name, specific_model_path=str(files.folder), threads=threads
        )
        for threads in sorted({1, usable_cores()})
    }


async def measure(rounds: int) -> dict[str, list[float]]:
    """Seconds of each round."""
    bare = _bare()
    reranker = make_reranker()
    await reranker.load()
    times: dict[str, list[float]] = {name: [] for name in ("ours", *bare)}
    for number in range(-_WARM_UP, rounds):
        first = (number + _WARM_UP) * 1000
        query = data.sentence(first)
        texts = [data.sentence(first + 7 * place) for place in range(1, CANDIDATES + 1)]
        for name in times:
            await asyncio.sleep(_PAUSE)
            started = time.perf_counter()
            if name == "ours":
                scores = await reranker.score(query, texts, seconds=60)
            else:
                scores = list(bare[name].rerank(query, texts))
            seconds = time.perf_counter() - started
            if len(scores) != CANDIDATES or None in scores:
                raise RuntimeError(f"{name} did not score all")
            if number >= 0:
                times[name].append(seconds)
    await reranker.close()
    return times


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measure(int(sys.argv[1])))))
