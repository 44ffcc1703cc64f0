"""The judge of words beside a judge by embeddings, on the labelled sentences.

    python -m tests.feedback.measure

By embeddings: the mean cosine to five sentences of praise less that to five of complaint, in the
local model; sure beyond two bounds that are chosen on DEVELOPMENT for accuracy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np

from lot_grpc.domain.judging import judge
from tests.feedback.held_out import HELD_OUT
from tests.feedback.sentences import DEVELOPMENT

Labelled = Sequence[tuple[int, str]]

PRAISE = (
    "Great work, thank you.",
    "This is exactly what I wanted.",
    "It works perfectly.",
    "The answer was very helpful.",
    "Well done, I am happy with the result.",
)
COMPLAINT = (
    "This is wrong.",
    "This is not what I wanted.",
    "It does not work.",
    "The answer was useless.",
    "Badly done, I am disappointed with the result.",
)


def sign(text: str) -> int:
    """What the judge of words says: 1, -1 or 0."""
    reward = judge(text).reward
    return (reward > 0) - (reward < 0)


def accuracy_and_false_sure(given: Labelled, told: Sequence[int]) -> tuple[float, float]:
    """Share told right, and share told wrong among those that were sure."""
    right = sum(label == one for (label, _), one in zip(given, told, strict=True))
    sure = [label != one for (label, _), one in zip(given, told, strict=True) if one]
    return right / len(given), sum(sure) / max(1, len(sure))


async def _leanings(texts: Sequence[str]) -> list[float]:
    """How much nearer each text is to praise than to complaint."""
    from lot_grpc.embedding.fastembed import open_fastembed

    embedder = await open_fastembed()
    try:
        given = await embedder.embed_documents([*PRAISE, *COMPLAINT, *texts])
    finally:
        await embedder.close()
    vectors = np.asarray([one.vector for one in given])
    anchors, told = vectors[: len(PRAISE) + len(COMPLAINT)], vectors[len(PRAISE) + len(COMPLAINT) :]
    cosines = told @ anchors.T
    near, far = cosines[:, : len(PRAISE)].mean(1), cosines[:, len(PRAISE) :].mean(1)
    return [float(one) for one in near - far]


def _by_bounds(leanings: Sequence[float], low: float, high: float) -> list[int]:
    return [(one > high) - (one < low) for one in leanings]


def _fitted(given: Labelled, leanings: Sequence[float]) -> tuple[float, float]:
    """The bounds that tell most of the sentences right."""
    steps = [float(one) for one in np.linspace(-0.2, 0.2, 81)]
    bounds = [(low, high) for low in steps for high in steps if low <= high]
    return max(
        bounds, key=lambda one: accuracy_and_false_sure(given, _by_bounds(leanings, *one))[0]
    )


def _print(name: str, given: Labelled, told: Sequence[int]) -> None:
    accuracy, false_sure = accuracy_and_false_sure(given, told)
    sure = sum(map(bool, told))
    print(
        f"{name:28} accuracy {accuracy:.3f}  sure {sure:3} of {len(given)}  false {false_sure:.3f}"
    )


async def main() -> None:
    """Print the figures."""
    leanings = {
        name: await _leanings([text for _, text in given])
        for name, given in (("development", DEVELOPMENT), ("held out", HELD_OUT))
    }
    bounds = _fitted(DEVELOPMENT, leanings["development"])
    for name, given in (("development", DEVELOPMENT), ("held out", HELD_OUT)):
        words = [sign(text) for _, text in given]
        near = _by_bounds(leanings[name], *bounds)
        both = [one or other for one, other in zip(words, near, strict=True)]
        _print(f"{name}: words", given, words)
        _print(f"{name}: embeddings", given, near)
        _print(f"{name}: words, else embeddings", given, both)
    begin = time.perf_counter()
    for _, text in DEVELOPMENT:
        judge(text)
    print(f"words: {(time.perf_counter() - begin) / len(DEVELOPMENT) * 1e6:.0f} us a sentence")
    long = "It is not good, but it works. " * 2_000
    begin = time.perf_counter()
    judge(long)
    print(f"words: {(time.perf_counter() - begin) * 1e3:.1f} ms for {len(long):,} characters")


if __name__ == "__main__":
    asyncio.run(main())
