"""How often a recall with ``min_match`` says that nothing fits, when it should and when not.

Every set is measured by weights that were fitted without it: tasks by those of the other tasks,
errors of one tool by those of the other tools; memories took part in no fit. Of a query the hits
are looked at that a recall would judge. Four shares, for each set and each ``min_match``:

* *removed*: the query's answers are not stored, but everything else of its set is. The share that
  gets nothing should be high.
* *foreign*: the query is of another subject than all that is stored. It should be higher still.
* *found*: its answer is stored and found. The share that gets nothing should be low.
* *lost*: the same, and no answer is among what it gets, if anything.

The last table has a ``min_similarity`` that does the same for queries of other subjects.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from lot_grpc.evaluation.dataset import EvalQuery
from tests.calibration.logistic import Floats, probabilities, ranked_right
from tests.calibration.sets import Judged, Searched

LEVELS: Final = (0.01, 0.02, *(round(0.05 * step, 2) for step in range(1, 20)))
TITLES: Final = {
    "removed": "answers removed: gets nothing",
    "foreign": "query of another subject: gets nothing",
    "found": "answer found: gets nothing",
    "right": "answer found: lost",
}
FOREIGN: Final = 100
"""Queries of other subjects that are put to each set."""
_STOPPED: Final = 0.95

_SUBJECTS: Final = {
    "webarena": "web shops and sites",
    "tau_retail": "web shops and sites",
    "humanevalpack": "programming",
    "programs": "programming",
    "code_search": "programming",
    "errors": "programming",
    "scifact": "science",
    "conversations": "private life",
}


@dataclass(frozen=True)
class Measured:
    """A set's queries, those of other subjects, and the weights that did not see the set."""

    searched: Sequence[Searched]
    foreign: Sequence[Searched]
    weights: Floats


Score: TypeAlias = Callable[[Sequence[Judged]], Floats]
"""What is compared with a minimum, for each hit."""


def foreign_to(name: str, queries: Mapping[str, Sequence[EvalQuery]]) -> list[EvalQuery]:
    """Queries of other subjects, which nothing in a set answers."""
    others = [
        EvalQuery(one.id, one.text)
        for other, several in queries.items()
        if _SUBJECTS[other] != _SUBJECTS[name]
        for one in several
    ]
    return random.Random(name).sample(others, FOREIGN)


@dataclass(frozen=True)
class Highest:
    """The highest score of each query's hits, 0 where there are none."""

    removed: Floats
    foreign: Floats
    found: Floats
    right: Floats
    """As ``found``, but of the right hits only."""

    @classmethod
    def of(cls, one: Measured, score: Score) -> Highest:
        found = [two.answered for two in one.searched if any(hit.right for hit in two.answered)]
        answers = [[hit for hit in hits if hit.right] for hits in found]

        def highest(each: Iterable[Sequence[Judged]]) -> Floats:
            return np.array([score(hits).max() if hits else 0.0 for hits in each])

        return cls(
            highest(two.removed for two in one.searched),
            highest(two.removed for two in one.foreign),
            highest(found),
            highest(answers),
        )


def curves(sets: Mapping[str, Measured], features: Score) -> list[str]:
    """All of it, as Markdown: a table for each share, a row for each ``min_match``."""
    by_match = {name: Highest.of(one, _probability(one, features)) for name, one in sets.items()}
    lines: list[str] = []
    for share, title in TITLES.items():
        lines += [f"| {title} | {' | '.join(sets)} |", "|" + " --- |" * (1 + len(sets))]
        for level in LEVELS:
            row = (f"{np.mean(getattr(one, share) < level):.0%}" for one in by_match.values())
            lines.append(f"| {level:.2f} | {' | '.join(row)} |")
        lines.append("")
    by_cosine = {name: Highest.of(one, _cosine) for name, one in sets.items()}
    return [*lines, *_compared(by_match, by_cosine)]


def _probability(one: Measured, features: Score) -> Score:
    return lambda hits: probabilities(features(hits), one.weights)


def _cosine(hits: Sequence[Judged]) -> Floats:
    return np.array([hit.similarity for hit in hits])


def _compared(by_match: Mapping[str, Highest], by_cosine: Mapping[str, Highest]) -> list[str]:
    """The same by the cosine alone: both with the minimum that stops ``_STOPPED`` of the foreign.

    ``AUC``: the chance that a found query has a higher score than one whose answers were removed.
    """
    head = ("minimum", "removed", "lost", "AUC")
    titles = (f"{kind}: {one}" for kind in ("min_match", "min_similarity") for one in head)
    lines = [f"| stops {_STOPPED:.0%} | {' | '.join(titles)} |", "|" + " --- |" * 9]
    for name, match in by_match.items():
        cells = []
        for one in (match, by_cosine[name]):
            least = float(np.quantile(one.foreign, _STOPPED))
            both = np.concatenate([one.found, one.removed])
            was = np.concatenate([np.ones(len(one.found)), np.zeros(len(one.removed))])
            cells += [
                f"{least:.3f}",
                f"{np.mean(one.removed < least):.0%}",
                f"{np.mean(one.right < least):.0%}",
                f"{ranked_right(both, was):.2f}",
            ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines
