from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lot_grpc.domain.outcomes import beta_mean
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import Candidate, RankingWeights, pool_size, rank

WEIGHTS = RankingWeights(gate=0.08, learned=0.08)


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    rows = draw(
        st.lists(
            st.tuples(
                st.floats(0, 1) | st.sampled_from([0.5, 0.55, 0.58, 0.6]),
                st.integers(0, 40),
                st.floats(0, 1),
            ),
            max_size=30,
        )
    )
    return [
        Candidate(f"c{n:02}", relevance, round(share * trials * 2) / 2, trials)
        for n, (relevance, trials, share) in enumerate(rows)
    ]


limits = st.integers(1, 12)


def ids(pool: list[Candidate], limit: int = 10, ranking: Ranking = Ranking.BALANCED) -> list[str]:
    return [item.candidate.id for item in rank(pool, ranking, WEIGHTS, limit)]


@pytest.mark.parametrize(("limit", "size"), [(1, 50), (5, 50), (16, 50), (17, 51), (100, 300)])
def test_the_pool_is_three_pages_and_at_least_fifty(limit, size):
    assert pool_size(limit) == size


def test_no_candidates_no_hits():
    assert rank([], Ranking.BALANCED, WEIGHTS, 5) == []


def test_what_worked_reorders_near_ties():
    assert ids([Candidate("a", 0.80, 0, 5), Candidate("b", 0.78, 5, 5)]) == ["b", "a"]


def test_what_failed_goes_behind_what_was_never_tried():
    assert ids([Candidate("a", 0.80, 0, 3), Candidate("b", 0.79)]) == ["b", "a"]


def test_outside_the_gate_nothing_learned_helps():
    pool = [Candidate("a", 0.80, 0, 50), Candidate("b", 0.71, 50, 50)]
    assert ids(pool) == ["a", "b"]


def test_on_the_edge_of_the_gate_it_does():
    pool = [Candidate("a", 0.75, 0, 50), Candidate("b", 0.75 - 0.0625, 50, 50)]
    assert [i.candidate.id for i in rank(pool, Ranking.BALANCED, RankingWeights(0.0625), 5)] == [
        "b",
        "a",
    ]


def test_similarity_learns_nothing():
    pool = [Candidate("a", 0.80, 0, 50), Candidate("b", 0.79, 50, 50), Candidate("c", 0.2)]
    ranked = rank(pool, Ranking.SIMILARITY, WEIGHTS, 5)
    assert [item.candidate.id for item in ranked] == ["a", "b", "c"]
    assert [item.score for item in ranked] == [0.80, 0.79, 0.2]
    assert not any(item.parts for item in ranked)


def test_equal_scores_are_ordered_by_id():
    assert ids([Candidate(name, 0.5) for name in "dbca"]) == ["a", "b", "c", "d"]


def test_at_most_half_of_a_page_comes_from_below():
    near = [Candidate(f"near{n}", 0.80 - n / 1000, 0, 9) for n in range(4)]
    below = [Candidate(f"wins{n}", 0.79 - n / 1000, 9, 9) for n in range(4)]
    page = ids(near + below, limit=4)
    assert sum(name.startswith("wins") for name in page) == 2
    assert page == ["wins0", "wins1", "near0", "near1"]


@given(pools(), limits)
def test_a_score_is_the_relevance_and_its_parts(pool, limit):
    for item in rank(pool, Ranking.BALANCED, WEIGHTS, limit):
        on_top = math.fsum(part.value * part.weight for part in item.parts)
        assert item.score == pytest.approx(item.candidate.relevance + on_top, abs=1e-12)
        assert len(item.parts) == 1


@given(pools(), limits)
def test_the_learned_part_is_bounded_by_its_weight(pool, limit):
    for item in rank(pool, Ranking.BALANCED, WEIGHTS, limit):
        assert abs(item.score - item.candidate.relevance) <= WEIGHTS.learned + 1e-12


@given(pools(), limits)
def test_a_hit_below_the_gate_is_never_above_one_within(pool, limit):
    page = rank(pool, Ranking.BALANCED, WEIGHTS, limit)
    if not page:
        return
    floor = max(c.relevance for c in pool) - WEIGHTS.gate
    within = [item.candidate.relevance >= floor for item in page]
    assert within == sorted(within, reverse=True)


@given(pools(), limits)
@settings(max_examples=200)
def test_a_page_is_full_ordered_without_repeats_and_half_from_below(pool, limit):
    page = rank(pool, Ranking.BALANCED, WEIGHTS, limit)
    assert len(page) == min(limit, len(pool))
    assert len({item.candidate.id for item in page}) == len(page)
    keys = [(-item.score, item.candidate.id) for item in page]
    assert keys == sorted(keys)
    nearest = sorted(pool, key=lambda c: (-c.relevance, c.id))[:limit]
    below = [item for item in page if item.candidate not in nearest]
    assert len(below) <= (limit + 1) // 2


@given(pools(), limits, st.randoms())
def test_the_order_candidates_come_in_does_not_matter(pool, limit, random):
    shuffled = list(pool)
    random.shuffle(shuffled)
    assert rank(shuffled, Ranking.BALANCED, WEIGHTS, limit) == rank(
        pool, Ranking.BALANCED, WEIGHTS, limit
    )


@given(pools(), limits)
def test_weight_nothing_is_similarity_alone(pool, limit):
    off = RankingWeights(gate=0.08, learned=0.0)
    assert rank(pool, Ranking.BALANCED, off, limit) == rank(
        pool, Ranking.SIMILARITY, WEIGHTS, limit
    )


def test_the_learned_part_is_the_beta_mean_around_one_half():
    (only,) = rank([Candidate("a", 0.5, 3, 4)], Ranking.BALANCED, WEIGHTS, 1)
    learned = next(part for part in only.parts if part.name == "learned")
    assert learned.value == pytest.approx(2 * (beta_mean(3, 4) - 0.5))
    assert learned.weight == WEIGHTS.learned
