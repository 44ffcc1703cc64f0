"""The cross-encoder's opinion, blended in: a pure function.

A cross-encoder reads query and text together and knows better what answers a question, but it was
trained on web passages, and a task, a function or an error message is none. So its scores move what
both legs found and never replace it: they are spread, as logits, over the range of relevance that
the reranked candidates have, and enter with ``RERANK_WEIGHT``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lot_grpc.domain.fusion import LEAST_SPAN, Relevance

RERANK_WEIGHT = 0.25
"""Fitted with the weights of the fusion (docs/retrieval.md)."""

DEFAULT_CANDIDATES = 10
"""Candidates that are read, the best ones."""

DEFAULT_SECONDS = 2.0
"""How long a recall waits for their scores."""

_LEAST = 1e-9


def blend(
    found: Sequence[Relevance], scores: Sequence[float | None], weight: float = RERANK_WEIGHT
) -> list[Relevance]:
    """All candidates reranked, best first, equal ones by id.

    Args:
        found: The fused candidates, best first.
        scores: The scores of the first of them, in [0, 1]; None for one that was not reached. It
            and those after it keep their relevance.
        weight: The weight of the scores, in [0, 1].
    """
    logits = {
        one.id: _logit(score)
        for one, score in zip(found, scores, strict=False)
        if score is not None
    }
    if len(set(logits.values())) < 2:  # a single one has no order, nor do equal ones
        return list(found)
    low, high = min(logits.values()), max(logits.values())
    reached = [one.value for one in found if one.id in logits]
    bottom = min(reached)  # so that none falls below one that was not scored
    span = max(max(reached) - bottom, LEAST_SPAN)
    blended = []
    for one in found:
        if one.id in logits:
            reranked = bottom + span * (logits[one.id] - low) / (high - low)
            value = (1.0 - weight) * one.value + weight * reranked
            one = replace(one, value=value, reranked=reranked, rerank_weight=weight)
        blended.append(one)
    blended.sort(key=lambda one: (-one.value, one.id))
    return blended


def _logit(score: float) -> float:
    bounded = min(1.0 - _LEAST, max(_LEAST, score))
    return math.log(bounded / (1.0 - bounded))
