"""Outcomes by the hundred thousand, as a busy service has them: few patterns and queries take most.

    python -m tests.bench.used FOLDER COUNT

records them into the store in ``FOLDER`` by the real services, each with its query; by Zipf's law
over the queries, and over the hits of a query.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import numpy as np

from lot_grpc.bootstrap import open_all
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.settings import Settings, StorageSettings
from tests.bench import data

QUERIES = 5_000
"""Different ones, the first of ``data.recall``."""

_EXPONENT = 1.1
_HITS = 5


async def use(folder: Path, count: int) -> dict[str, int]:
    """Record the outcomes; return how many queries and patterns took part."""
    storage = StorageSettings(data_dir=folder, maintenance="off")
    random = np.random.default_rng(20_261_128)
    asked = np.minimum(random.zipf(_EXPONENT, count), 10**9) % QUERIES
    places = np.minimum(random.zipf(2.0, count), _HITS) - 1
    worked = random.random(count) < 0.6
    hits: dict[int, list[str]] = {}
    async with open_all(Settings(storage=storage), None) as opened:
        services = opened.services
        for number, place, good in zip(asked.tolist(), places.tolist(), worked, strict=True):
            query = data.sentence(number)
            if number not in hits:
                language = data.LANGUAGES[number % len(data.LANGUAGES)]
                narrowed = PatternFilter(
                    languages=(language,), min_success_rate=data.MIN_SUCCESS_RATE
                )
                question = pattern_request(RecallOptions(query, _HITS), narrowed)
                answer = await services.recall.patterns.find(data.NAMESPACE, question)
                hits[number] = [hit.thing.pattern_id for hit in answer.hits]
            draft = OutcomeDraft(
                (hits[number][place % len(hits[number])],),
                Outcome.SUCCESS if good else Outcome.FAILURE,
                query=query,
            )
            await services.outcomes.recorder.record(data.NAMESPACE, draft)
        patterns = {one for found in hits.values() for one in found}
    return {"queries": len(hits), "patterns": len(patterns)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(use(Path(sys.argv[1]), int(sys.argv[2])))))
