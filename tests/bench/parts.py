"""What the parts cost by themselves, in one process, one at a time.

    python -m tests.bench.parts FOLDER COUNT

prints milliseconds as a JSON object. Writes to the store in FOLDER.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from lot_grpc.lexical.bm25 import lexical_query
from tests.bench import data
from tests.bench.bare import Bare


def _p50(taken: list[float]) -> float:
    return round(statistics.median(taken) * 1000, 4)


def _timed(taken: list[float], call: Callable[..., Any], *arguments: Any) -> Any:
    started = time.perf_counter()
    result = call(*arguments)
    taken.append(time.perf_counter() - started)
    return result


async def measure(folder: str, count: int) -> dict[str, float]:
    """Medians in milliseconds by part. ``search``: both queries; ``upsert``: with its terms."""
    bare = Bare(folder)
    names = ("embed", "terms", "search", "fetch", "upsert")
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(count):
        started = time.perf_counter()
        query = data.sentence(number)
        vector = await bare.vectors.of_query(query)
        times["embed"].append(time.perf_counter() - started)
        language = data.LANGUAGES[number % len(data.LANGUAGES)]
        words = _timed(times["terms"], lexical_query, query).vector
        narrowed = (language, data.MIN_SUCCESS_RATE)
        dense, _ = _timed(times["search"], bare.search, vector, words, *narrowed)
        _timed(times["fetch"], bare.fetch, dense)
        items = json.loads(data.save(5_000_000 + number, bare=True))
        _timed(times["upsert"], bare.upsert, items, [vector])
    return {name: _p50(taken) for name, taken in times.items()}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measure(sys.argv[1], int(sys.argv[2])))))
