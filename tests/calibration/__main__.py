"""``python -m tests.calibration``: fits the weights of ``domain.match_probability``, and says how
well they hold.

The sets in ``--data`` and the fitted half of ``pairs`` count the same, each as one. Every set is
measured by weights that were fitted without it; of ``pairs`` the other half is. ``unseen`` pairs
and memories are only measured; the latter also by weights fitted on other memories, which are
worse, so the product has none. Errors have weights of their own, fitted on hits of other
signatures and measured tool by tool, each by those of the others. The last lines have the weights
of all. Exit code 1: the product's are others.

``--abstention`` instead shows how often a recall with ``min_match`` gets nothing, when it should
and when not (``abstention``). The first run embeds for minutes, later ones take half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from lot_grpc.domain.match_probability import ERROR_WEIGHTS, WEIGHTS
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.services.recall.matching import likeness_of
from tests.calibration.abstention import Measured, curves, foreign_to
from tests.calibration.logistic import (
    Floats,
    brier,
    calibration_error,
    fit,
    probabilities,
    ranked_right,
    reliability,
)
from tests.calibration.pairs import FITTED, HELD, UNSEEN
from tests.calibration.sets import (
    ERRORS,
    MEMORIES,
    SETS,
    Judged,
    Searched,
    judged_pairs,
    stored,
)
from tests.calibration.vectors import CachedVectors

PAIRS, UNSEEN_PAIRS = "pairs", "unseen"
HALF = 0.5
_SEED_RULE = 0.7
"""The similarity from which a pattern would be reused without a probability."""
_OF_ERRORS = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
"""Of errors the cosine and the words say all: contradictions got a weight of the wrong sign."""


Sets: TypeAlias = Mapping[str, Sequence[Judged]]


@dataclass(frozen=True)
class Collected:
    """What is searched for in each set, queries of other subjects too, and the pairs."""

    searched: Mapping[str, Sequence[Searched]]
    foreign: Mapping[str, Sequence[Searched]]
    fitted_pairs: Sequence[Judged]
    held: Sets

    @property
    def tasks(self) -> Sets:
        """What the weights of tasks are fitted on."""
        return {**{name: self.hits(name) for name in SETS}, PAIRS: self.fitted_pairs}

    @property
    def errors(self) -> Sets:
        """The hits of each tool whose errors are found in other words too."""
        by_tool: dict[str, list[Judged]] = {}
        for hit in self.hits(ERRORS):
            by_tool.setdefault(_tool(hit), []).append(hit)
        return by_tool

    def hits(self, name: str) -> list[Judged]:
        """All that is found in a set, with the answers stored."""
        return [hit for one in self.searched[name] for hit in one.answered]


def _tool(error: Judged) -> str:
    return error.kind.rpartition("/")[2]


async def collect(data: Path, cache: Path, *, foreign: bool) -> Collected:
    """Everything that is measured. ``foreign``: with queries of other subjects."""
    embedder = CachedVectors(await open_fastembed(threads=1), cache / "vectors.npz")
    try:
        sets = {name: stored(data / name, embedder) for name in (*SETS, *MEMORIES, ERRORS)}
        queries = {name: one.data.queries for name, one in sets.items()}
        return Collected(
            {name: await one.searched(queries[name]) for name, one in sets.items()},
            {name: await one.searched(foreign_to(name, queries)) for name, one in sets.items()}
            if foreign
            else {},
            await judged_pairs(PAIRS, FITTED, embedder),
            {
                PAIRS: await judged_pairs(PAIRS, HELD, embedder),
                UNSEEN_PAIRS: await judged_pairs(UNSEEN_PAIRS, UNSEEN, embedder),
            },
        )
    finally:
        await embedder.close()


def features(hits: Sequence[Judged]) -> Floats:
    """A row for each."""
    rows = [likeness_of(one.query, one.text, one.similarity).features for one in hits]
    return np.array(rows, dtype=np.float64)


def right(hits: Sequence[Judged]) -> Floats:
    return np.array([one.right for one in hits], dtype=np.float64)


def fitted(sets: Sets, used: Sequence[float] = ()) -> Floats:
    """The weights of some sets, each of which counts as one. ``used``: 0 for features left out."""
    counts = [np.full(len(hits), 1 / len(hits) / len(sets)) for hits in sets.values()]
    rows = [features(hits) for hits in sets.values()]
    answers = [right(hits) for hits in sets.values()]
    kept = np.array(used or 1.0)
    return fit(np.vstack(rows) * kept, np.concatenate(answers), np.concatenate(counts))


def without(sets: Sets, name: str) -> Sets:
    return {one: hits for one, hits in sets.items() if one != name}


def of_errors(errors: Sets, left_out: str = "") -> Floats:
    """The weights of errors, of which each hit counts as one."""
    kept = without(errors, left_out).values()
    return fitted({ERRORS: [hit for hits in kept for hit in hits]}, _OF_ERRORS)


def row(name: str, said: Floats, was: Floats) -> str:
    """How well probabilities hold."""
    base = float(was.mean() * (1 - was.mean()))
    ranked = f"{ranked_right(said, was):.3f}" if base else ""
    return (
        f"| {name} | {len(was):,} | {was.mean():.0%} | {brier(said, was):.3f} | {base:.3f} "
        f"| {calibration_error(said, was):.3f} | {ranked} |"
    )


def measured(collected: Collected) -> Mapping[str, Measured]:
    """Each set with weights that did not see it."""
    tasks, errors = collected.tasks, collected.errors
    weights = {
        **{name: fitted(without(tasks, name)) for name in SETS},
        **dict.fromkeys(MEMORIES, fitted(tasks)),
    }
    found = {
        name: Measured(collected.searched[name], collected.foreign[name], one)
        for name, one in weights.items()
    }
    for tool, hits in errors.items():
        if right(hits).any():
            of_tool = [
                one
                for one in collected.searched[ERRORS]
                if any(_tool(hit) == tool for hit in (*one.answered, *one.removed))
            ]
            found[f"errors: {tool}"] = Measured(
                of_tool, collected.foreign[ERRORS], of_errors(errors, tool)
            )
    return found


def report(collected: Collected) -> list[str]:
    """All of it, as Markdown."""
    sets, held = collected.tasks, collected.held
    lines = ["| left out | hits | right | Brier | baseline | ECE | AUC |", "|" + " --- |" * 7]
    left_out: list[tuple[Floats, Floats]] = []
    for name, hits in {**sets, **held}.items():
        kept = sets if name in held else without(sets, name)
        said, was = probabilities(features(hits), fitted(kept)), right(hits)
        if name in sets:
            left_out.append((said, was))
        lines.append(row(name, said, was))
    memories = {name: collected.hits(name) for name in MEMORIES}
    for name, hits in memories.items():
        was = right(hits)
        lines.append(row(name, probabilities(features(hits), fitted(sets)), was))
        own = probabilities(features(hits), fitted(without(memories, name)))
        lines.append(row(f"{name}, by other memories", own, was))
    for name, hits in collected.errors.items():
        was = right(hits)
        own = probabilities(features(hits), of_errors(collected.errors, name))
        lines.append(row(f"errors: {name}", own, was))
        of_tasks = probabilities(features(hits), fitted(sets))
        lines.append(row(f"errors: {name}, by tasks", of_tasks, was))
    said, was = (np.concatenate(column) for column in zip(*left_out, strict=True))
    counts = np.concatenate([np.full(len(one), 1 / len(one)) for one, _ in left_out])
    lines += ["", "| predicted | right | of all hits |", "|" + " --- |" * 3]
    lines += [
        f"| {expected:.2f} | {share:.2f} | {of_all:.0%} |"
        for expected, share, of_all in reliability(said, was, counts)
    ]
    weights = np.round(fitted(sets), 2)
    for title, name in (("held-out", PAIRS), ("unseen", UNSEEN_PAIRS)):
        lines += ["", *pairs_table(title, held[name], weights)]
    return lines


def pairs_table(title: str, pairs: Sequence[Judged], weights: Floats) -> list[str]:
    """What the weights say of pairs, beside a rule that goes by the cosine alone."""
    lines = [
        f"| {title} pairs | same task | mean | at least .5 | cosine at least .7 |",
        "|" + " --- |" * 5,
    ]
    chances = probabilities(features(pairs), weights)
    for kind in dict.fromkeys(one.kind for one in pairs):
        of_kind = [n for n, one in enumerate(pairs) if one.kind == kind]
        over = sum(chances[n] >= HALF for n in of_kind)
        near = sum(pairs[n].similarity >= _SEED_RULE for n in of_kind)
        same = "yes" if pairs[of_kind[0]].right else "no"
        lines.append(
            f"| {kind} | {same} | {chances[of_kind].mean():.2f} | {over} of {len(of_kind)} "
            f"| {near} of {len(of_kind)} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.calibration", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir(), "lot-calibration")
    )
    parser.add_argument(
        "--abstention", action="store_true", help="how often min_match answers with nothing"
    )
    options = parser.parse_args()
    names = (*SETS, "scifact", ERRORS)
    missing = [name for name in names if not (options.data / name).is_dir()]
    if missing:
        print(f"{options.data}: no {missing[0]}; --data names a folder with {', '.join(names)}")
        return 2
    collected = asyncio.run(collect(options.data, options.cache, foreign=options.abstention))
    if options.abstention:
        print("\n".join(curves(measured(collected), features)))
        return 0
    print("\n".join(report(collected)))
    same = True
    for name, weights, used in (
        ("WEIGHTS", fitted(collected.tasks), WEIGHTS),
        ("ERROR_WEIGHTS", of_errors(collected.errors), ERROR_WEIGHTS),
    ):
        print(f"\n{name}: Final = ({', '.join(f'{one:.2f}' for one in weights)})")
        same = same and bool(np.abs(weights - np.array(used)).max() <= 0.01)
    if not same:
        print("domain/match_probability.py has other ones: copy these there", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
