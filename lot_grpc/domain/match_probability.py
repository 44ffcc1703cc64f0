"""The probability that a hit fits the query: that it is for the same task, answers it, or fixes it.

The same task: the same is to be done, so what solved one works for the other. Names, places,
numbers and other values may differ, as within a template; an opposite, a negation, the same act on
another kind of object and another act on the same object are different tasks.

A logistic regression (Cox, "The Regression Analysis of Binary Sequences", 1958) on the cosine, on
the words and on whether they contradict each other. The cosine alone cannot tell: "enable" and
"disable" with the same words around them have .87, and half of all paraphrases have less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final, Protocol, TypeVar

CALIBRATED_MODEL: Final = "BAAI/bge-small-en-v1.5"
"""The embedding model with whose cosines the weights were fitted; they hold for no other."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What the probability is taken from. ``similarity``, ``words`` in [0, 1].

    ``words``: Dice's coefficient of both texts' words, without function words and values.
    ``differ``: each text has such a word that the other lacks.
    ``opposed``: one denies or reverses what the other says. ``bare``: what was found is code that
    no words describe.
    """

    similarity: float
    words: float
    differ: bool = False
    opposed: bool = False
    bare: bool = False

    @property
    def features(self) -> tuple[float, ...]:
        """What is weighed, in the order of ``WEIGHTS``.

        Words matter more, the less similar the meanings are. Where both texts have words of their
        own, similarity tells less, the more it comes from the words that they share. A
        contradiction matters more, the more words both share: in unlike texts two opposite words
        are mostly chance.
        """
        return (
            1.0,
            self.similarity,
            (1.0 - self.similarity) * self.words,
            self.words * self.differ,
            self.words * self.opposed,
            float(self.bare),
        )


JUDGED: Final = 10
"""Candidates whose probability is computed for a page, or as many as it has if that is more. Hardly
any further down fits."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Candidates below a minimum probability: how many, and their highest probability."""

    count: int = 0
    best: float = 0.0

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(self.count + other.count, max(self.best, other.best))


NONE_LEFT_OUT: Final = LeftOut()


class Judged(Protocol):
    """A hit with its probability; None: unknown or certain."""

    @property
    def match(self) -> float | None:
        """The probability that it fits."""


H = TypeVar("H", bound=Judged)


def fitting(found: list[H], min_match: float | None, limit: int) -> tuple[list[H], LeftOut]:
    """The best ``limit`` that are likely enough to fit, and those above them that are not."""
    if not min_match:
        return found[:limit], NONE_LEFT_OUT
    kept: list[H] = []
    left_out = NONE_LEFT_OUT
    for one in found:
        if len(kept) == limit:
            break
        if one.match is not None and one.match < min_match:
            left_out += LeftOut(1, one.match)
        else:
            kept.append(one)
    return kept, left_out


WEIGHTS: Final = (-15.04, 18.83, 14.59, -1.69, -6.35, -0.80)
"""From ``python -m tests.calibration``, which also measures their accuracy (docs/retrieval.md)."""


ERROR_WEIGHTS: Final = (-22.70, 24.58, 9.86, 0.0, 0.0, 0.0)
"""For solutions of errors with other signatures. They seldom fit, however similar they are."""


def match_probability(likeness: Likeness, weights: Sequence[float] = WEIGHTS) -> float:
    """The probability in [0, 1]."""
    logit = sum(weight * one for weight, one in zip(weights, likeness.features, strict=True))
    return 1.0 / (1.0 + exp(-logit))
