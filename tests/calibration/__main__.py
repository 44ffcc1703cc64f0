"""``python -m tests.calibration``: fits the weights of ``domain.match_probability``, and says how
well they hold.

The sets in ``--data`` and the fitted half of ``pairs`` count the same, each as one. Every set is
measured by weights that were fitted without it; of ``pairs`` the other half is. ``unseen`` pairs
are only measured. Errors and their solutions are no tasks: they are measured, to show how far the
weights hold, and never fitted. The last line has the weights of all sets together. Exit code 1:
the product's are others.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from lot_grpc.domain.match_probability import WEIGHTS
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.services.recall.matching import likeness_of
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
from tests.calibration.sets import ERRORS, SETS, Judged, judged_hits, judged_pairs
from tests.calibration.vectors import CachedVectors

PAIRS, UNSEEN_PAIRS = "pairs", "unseen"
HALF = 0.5
_SEED_RULE = 0.7
"""The similarity from which a pattern would be reused without a probability."""


Sets: TypeAlias = Mapping[str, Sequence[Judged]]


async def collect(data: Path, cache: Path) -> tuple[Sets, Sets]:
    """The hits of every set and of the fitted pairs, and those that are only measured."""
    embedder = CachedVectors(await open_fastembed(threads=1), cache / "vectors.npz")
    try:
        found = {name: await judged_hits(data / name, embedder) for name in SETS}
        found[PAIRS] = await judged_pairs(PAIRS, FITTED, embedder)
        return found, {
            PAIRS: await judged_pairs(PAIRS, HELD, embedder),
            UNSEEN_PAIRS: await judged_pairs(UNSEEN_PAIRS, UNSEEN, embedder),
            ERRORS: await judged_hits(data / ERRORS, embedder),
        }
    finally:
        await embedder.close()


def features(hits: Sequence[Judged]) -> Floats:
    """A row for each."""
    rows = [likeness_of(one.query, one.text, one.similarity).features for one in hits]
    return np.array(rows, dtype=np.float64)


def right(hits: Sequence[Judged]) -> Floats:
    return np.array([one.right for one in hits], dtype=np.float64)


def fitted(sets: Sets) -> Floats:
    """The weights of some sets, each of which counts as one."""
    counts = [np.full(len(hits), 1 / len(hits) / len(sets)) for hits in sets.values()]
    rows = [features(hits) for hits in sets.values()]
    answers = [right(hits) for hits in sets.values()]
    return fit(np.vstack(rows), np.concatenate(answers), np.concatenate(counts))


def report(sets: Sets, held: Sets) -> list[str]:
    """All of it, as Markdown."""
    lines = ["| left out | hits | right | Brier | baseline | ECE | AUC |", "|" + " --- |" * 7]
    left_out: list[tuple[Floats, Floats]] = []
    for name, hits in {**sets, **held}.items():
        kept = sets if name in held else {one: sets[one] for one in sets if one != name}
        said, was = probabilities(features(hits), fitted(kept)), right(hits)
        if name in sets:
            left_out.append((said, was))
        base = float(was.mean() * (1 - was.mean()))
        lines.append(
            f"| {name} | {len(was):,} | {was.mean():.0%} | {brier(said, was):.3f} | {base:.3f} "
            f"| {calibration_error(said, was):.3f} | {ranked_right(said, was):.3f} |"
        )
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
    options = parser.parse_args()
    names = (*SETS, ERRORS)
    missing = [name for name in names if not (options.data / name).is_dir()]
    if missing:
        print(f"{options.data}: no {missing[0]}; --data names a folder with {', '.join(names)}")
        return 2
    sets, held = asyncio.run(collect(options.data, options.cache))
    print("\n".join(report(sets, held)))
    weights = fitted(sets)
    print(f"\nWEIGHTS: Final = ({', '.join(f'{one:.2f}' for one in weights)})")
    if np.abs(weights - np.array(WEIGHTS)).max() > 0.01:
        print("domain/match_probability.py has other ones: copy these there", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
