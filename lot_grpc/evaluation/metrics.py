"""The quality of one ranking. Each metric is in [0, 1], larger is better.

A document is relevant if its gain is above 0. Unjudged documents count as not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

NDCG, MRR, RECALL, HIT = "ndcg@10", "mrr@10", "recall@5", "hit@1"
METRICS = (NDCG, MRR, RECALL, HIT)
DEPTH = 10
"""How many documents of a ranking are considered."""
_RECALL_DEPTH = 5


def scores(ranking: Sequence[str], judged: Mapping[str, float]) -> dict[str, float]:
    """All metrics of a query's ranking, best document first. At least one must be relevant."""
    return {
        NDCG: ndcg(ranking, judged),
        MRR: reciprocal_rank(ranking, judged),
        RECALL: recall(ranking, judged),
        HIT: hit(ranking, judged),
    }


def ndcg(ranking: Sequence[str], judged: Mapping[str, float], depth: int = DEPTH) -> float:
    """Normalised discounted cumulative gain: DCG over the DCG of the best possible ranking.

    DCG = sum over ranks i = 1 … depth of gain_i / log2(i + 1), with linear gains, and the ideal
    over all that is judged: ``ndcg_cut`` of trec_eval, which BEIR reports. Source: Järvelin and
    Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20 (2002), with the
    discount of Burges et al., ICML 2005.
    """
    ideal = _dcg(sorted(judged.values(), reverse=True)[:depth])
    return _dcg([judged.get(document, 0.0) for document in ranking[:depth]]) / ideal


def _dcg(gains: Sequence[float]) -> float:
    return sum(max(gain, 0.0) / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def reciprocal_rank(
    ranking: Sequence[str], judged: Mapping[str, float], depth: int = DEPTH
) -> float:
    """1 / rank of the first relevant document, 0 if none is among the first ``depth``.

    Its mean is MRR. Source: Voorhees, "The TREC-8 question answering track report" (1999).
    """
    for rank, document in enumerate(ranking[:depth], 1):
        if judged.get(document, 0.0) > 0:
            return 1.0 / rank
    return 0.0


def recall(
    ranking: Sequence[str], judged: Mapping[str, float], depth: int = _RECALL_DEPTH
) -> float:
    """Relevant documents among the first ``depth`` over all relevant ones.

    ``recall_k`` of trec_eval: with more than ``depth`` relevant documents it cannot reach 1.
    """
    relevant = {document for document, gain in judged.items() if gain > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant)


def hit(ranking: Sequence[str], judged: Mapping[str, float]) -> float:
    """1 if the first document is relevant (``success_1`` of trec_eval), else 0."""
    return 1.0 if ranking and judged.get(ranking[0], 0.0) > 0 else 0.0
