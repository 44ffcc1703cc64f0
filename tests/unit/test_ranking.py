from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.context_stats import ContextStats
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import Candidate, RankingWeights, pool_size, rank

WEIGHTS = RankingWeights(reorder_margin=0.08, learned=0.08)
NEUTRAL = WEIGHTS.neutral


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
    ranked = rank(pool, Ranking.RELEVANCE, WEIGHTS, 5)
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
    floor = max(c.relevance for c in pool) - WEIGHTS.reorder_margin
    within = [item.candidate.relevance >= floor for item in page]
    assert within == sorted(within, reverse=True)


@given(pools(), limits)
def test_a_page_is_full_ordered_without_repeats_and_half_from_below(pool, limit):
    page = rank(pool, Ranking.BALANCED, WEIGHTS, limit)
    assert len(page) == min(limit, len(pool))
    assert len({item.candidate.id for item in page}) == len(page)
    keys = [(-item.score, -item.candidate.relevance, item.candidate.id) for item in page]
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
    off = RankingWeights(reorder_margin=0.08, learned=0.0)
    assert rank(pool, Ranking.BALANCED, off, limit) == rank(pool, Ranking.RELEVANCE, WEIGHTS, limit)


def learned(pool: list[Candidate], ranking: Ranking = Ranking.BALANCED) -> dict[str, float]:
    return {
        item.candidate.id: part.value
        for item in rank(pool, ranking, WEIGHTS, 100)
        for part in item.parts
        if part.name != "outside_reorder_margin"
    }


def log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def test_on_another_query_four_trials_at_neutral_stand_before_the_outcomes():
    other = Candidate("a", 0.5, other_successes=1, other_trials=1)
    shift = log_odds((1 + 4 * NEUTRAL) / (1 + 4)) - log_odds(NEUTRAL)
    expected = {"a": pytest.approx(shift / 3), "b": pytest.approx(0.0)}
    assert learned([other, Candidate("b", 0.5)]) == expected


def test_on_the_query_itself_two_trials_stand_before_the_outcomes_at_what_untried_ones_have():
    sure = 4 / 5
    tried = (5 * NEUTRAL + sure * 3 / 4) / (5 * NEUTRAL + sure * NEUTRAL)
    untried = log_odds(NEUTRAL) + math.log(tried)
    chance = 1 / (1 + math.exp(-untried))
    expected = (log_odds((3 + 2 * chance) / (4 + 2)) - untried) / 3
    assert learned([Candidate("a", 0.5, 3, 4)])["a"] == pytest.approx(expected)


def test_the_more_failed_on_a_query_the_less_another_failure_counts():
    """Where few near-ties work, what failed once is tried again before what lies far behind."""
    failed = [Candidate(f"failed{n}", 0.5, 0, 3) for n in range(8)]
    alone = learned([Candidate("a", 0.5, 0, 1)])["a"]
    assert alone < learned([Candidate("a", 0.5, 0, 1), *failed])["a"] < 0


def test_the_least_weight_is_no_error():
    pool = [Candidate("a", 0.9, 0, 3), Candidate("b", 0.8, 1, 1)]
    page = rank(pool, Ranking.BALANCED, RankingWeights(learned=1e-300), 2)
    assert [one.candidate.id for one in page] == ["a", "b"]


def test_a_success_on_the_query_itself_counts_for_more_than_one_on_another():
    there = Candidate("there", 0.5, other_successes=1, other_trials=1)
    values = learned([Candidate("here", 0.5, 1, 1), there])
    assert values["here"] > values["there"] > 0


@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE])
def test_what_was_never_tried_neither_gains_nor_loses_whatever_its_neighbours_did(ranking):
    for successes in (0, 3, 10):
        others = [Candidate(f"other{n}", 0.5, successes, 10) for n in range(4)]
        assert learned([*others, Candidate("new", 0.5)], ranking)["new"] == pytest.approx(0.0)


def test_reliable_gives_for_what_is_sure_and_takes_as_balanced_does():
    pool = [
        Candidate("once", 0.5, 1, 1),
        Candidate("often", 0.5, 9, 10),
        Candidate("no", 0.5, 0, 3),
    ]
    sure, mean = learned(pool, Ranking.RELIABLE), learned(pool)
    assert sure["once"] == pytest.approx(0.0)
    assert mean["once"] > 0
    assert 0 < sure["often"] < mean["often"]
    assert sure["no"] == mean["no"] < 0


RANKINGS = st.sampled_from([Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE])


@given(pools(), limits, RANKINGS, st.integers(0, 9))
def test_in_every_ranking_the_gate_and_the_bound_hold(pool, limit, ranking, seed):
    page = rank(pool, ranking, WEIGHTS, limit, seed)
    most = WEIGHTS.weight_of(ranking)
    best = max((c.relevance for c in pool), default=0.0)
    within = [item.candidate.relevance >= best - WEIGHTS.reorder_margin for item in page]
    assert within == sorted(within, reverse=True)
    for item in page:
        assert abs(item.score - item.candidate.relevance) <= most + 1e-12
        (part,) = item.parts
        assert item.score == item.candidate.relevance + part.value * part.weight
    keys = [(-item.score, -item.candidate.relevance, item.candidate.id) for item in page]
    assert keys == sorted(keys)


@given(pools(), limits, RANKINGS)
def test_a_hit_that_leads_by_more_than_the_gate_stays_first(pool, limit, ranking):
    ahead = Candidate("ahead", max((c.relevance for c in pool), default=0) + 0.0801, 0, 40)
    assert rank([*pool, ahead], ranking, WEIGHTS, limit)[0].candidate == ahead


@given(pools(), st.integers(0, 29), st.sampled_from([Ranking.BALANCED, Ranking.RELIABLE]))
def test_one_more_success_never_lowers_a_score(pool, which, ranking):
    if not pool:
        return
    which %= len(pool)
    one = pool[which]
    better = [*pool]
    better[which] = replace(one, successes=one.successes + 1, trials=one.trials + 1)

    def score(candidates):
        page = rank(candidates, ranking, WEIGHTS, len(candidates))
        (found,) = [item.score for item in page if item.candidate.id == one.id]
        return found

    assert score(better) >= score(pool) - 1e-12


def test_reliable_puts_the_proven_before_the_lucky():
    pool = [Candidate("lucky", 0.50, 2, 2), Candidate("proven", 0.50, 18, 20)]
    assert ids(pool, ranking=Ranking.RELIABLE) == ["proven", "lucky"]
    assert ids(pool, ranking=Ranking.BALANCED)[0] in ("proven", "lucky")


def test_one_failure_after_eight_successes_leaves_something_proven():
    stats = ContextStats()
    for value in [1.0] * 8 + [0.0]:
        stats = stats.record(value, 0, WEIGHTS.fading)
    pool = [Candidate("proven", 0.5, stats.successes, stats.trials), Candidate("untried", 0.5)]
    assert learned(pool, Ranking.RELIABLE)["proven"] > 0.05


def test_explore_gives_the_same_order_for_the_same_seed_and_tries_what_is_tried_little():
    pool = [Candidate("often", 0.5, 6, 10), Candidate("little", 0.5, 1.8, 3)]
    firsts = set()
    for seed in range(40):
        page = rank(pool, Ranking.EXPLORE, WEIGHTS, 2, seed)
        assert page == rank(pool, Ranking.EXPLORE, WEIGHTS, 2, seed)
        firsts.add(page[0].candidate.id)
    assert firsts == {"often", "little"}


def test_explore_mostly_takes_what_worked():
    pool = [Candidate("bad", 0.5, 2, 40), Candidate("good", 0.5, 38, 40)]
    firsts = [rank(pool, Ranking.EXPLORE, WEIGHTS, 2, seed)[0].candidate.id for seed in range(50)]
    assert firsts.count("good") == 50


@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELEVANCE])
def test_one_of_several_places_is_for_the_best_that_is_reserved(ranking):
    pool = [Candidate(f"c{n}", 0.9 - 0.01 * n) for n in range(9)]
    for limit, page in [(1, ["c0"]), (2, ["c0", "c6"]), (3, ["c0", "c1", "c6"])]:
        ranked = rank(pool, ranking, WEIGHTS, limit, reserved={"c6", "c8"})
        assert [item.candidate.id for item in ranked] == page
    ranked = rank(pool, ranking, WEIGHTS, 3, reserved={"c1", "c8"})
    assert [item.candidate.id for item in ranked] == ["c0", "c1", "c2"]


def test_a_reserved_place_keeps_the_order_of_the_scores():
    proven = [Candidate(f"p{n}", 0.8, 9, 9) for n in range(4)]
    pool = [Candidate(f"c{n}", 0.85) for n in range(4)] + proven
    ranked = rank(pool, Ranking.BALANCED, WEIGHTS, 4, reserved={"p3"})
    assert [item.candidate.id for item in ranked] == ["p0", "p1", "p3", "c0"]
