"""How sure a rate is, and whether two differ by more than chance."""

from __future__ import annotations

from math import comb

from lot_grpc.domain.outcomes import wilson_lower_bound


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % score interval of Wilson (1927) of a rate; (0, 1) without trials.

    It is symmetric: the upper bound of the successes is what the lower one of the failures leaves.
    """
    if not trials:
        return 0.0, 1.0
    low = wilson_lower_bound(successes, trials)
    high = 1.0 - wilson_lower_bound(trials - successes, trials)
    share = successes / trials  # within, but for rounding where it is 0 or 1
    return min(low, share), max(high, share)


def fisher_exact(successes_a: int, trials_a: int, successes_b: int, trials_b: int) -> float:
    """How likely two shares differ as much, or more, if both have one chance; 1 without trials.

    Fisher's exact test (1922), two-sided: the sum of the probabilities of all tables with the same
    margins that are no likelier than this one, hypergeometric: C(a, k) C(b, s - k) / C(a + b, s).
    Worked out in whole numbers, so that equally likely tables count as equal.
    """
    successes = successes_a + successes_b
    first, last = max(0, successes - trials_b), min(trials_a, successes)
    ways = _ways(trials_a, trials_b, successes, first, last)
    observed = ways[successes_a - first]
    return sum(way for way in ways if way <= observed) / sum(ways)


def _ways(a: int, b: int, successes: int, first: int, last: int) -> list[int]:
    """C(a, k) C(b, successes - k) for k from ``first`` to ``last``.

    Each follows from the one before by the ratio of neighbours, so no binomial is worked out anew.
    """
    way = comb(a, first) * comb(b, successes - first)
    ways = [way]
    for k in range(first, last):
        way = way * (a - k) * (successes - k) // ((k + 1) * (b - successes + k + 1))
        ways.append(way)
    return ways
