"""Which hits recall reads: just those that can come onto the page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import Candidate, RankingWeights, contenders, rank

WEIGHTS = RankingWeights(reorder_margin=0.08, learned=0.08)


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    """Candidates, best first; many within the margin, many equal."""
    near = st.integers(0, 30).map(lambda step: 0.9 - step * 0.008)
    relevances = sorted(draw(st.lists(near, max_size=40)), reverse=True)
    trials = draw(st.lists(st.integers(0, 30), min_size=40, max_size=40))
    shares = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=40, max_size=40))
    return [
        Candidate(f"{number:02}", relevance, shares[number] * trials[number], trials[number])
        for number, relevance in enumerate(relevances)
    ]


@given(pools(), st.integers(1, 12), st.sampled_from([Ranking.BALANCED, Ranking.RELEVANCE]))
def test_the_page_is_the_same_as_if_all_were_read(
    pool: list[Candidate], limit: int, ranking: Ranking
) -> None:
    read = contenders([one.relevance for one in pool], ranking, WEIGHTS, limit)
    assert rank(pool[:read], ranking, WEIGHTS, limit) == rank(pool, ranking, WEIGHTS, limit)


def test_beyond_the_page_only_near_ties_are_read() -> None:
    relevances = [0.9, 0.88, 0.83, 0.81, 0.5, 0.4]
    assert contenders(relevances, Ranking.BALANCED, WEIGHTS, 1) == 3
    assert contenders(relevances, Ranking.BALANCED, WEIGHTS, 5) == 5
    assert contenders(relevances, Ranking.RELEVANCE, WEIGHTS, 1) == 1
    assert contenders(relevances, Ranking.BALANCED, RankingWeights(learned=0.0), 2) == 2
