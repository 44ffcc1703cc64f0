"""How well the rule of conflicts tells changes from paraphrases and other subjects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.lexical.conflicts import contradiction

KINDS = ("change", "paraphrase", "other")


@dataclass(frozen=True)
class Pair:
    kind: str
    first: str
    second: str


@dataclass(frozen=True)
class Measured:
    """Of each kind, how many are taken for a change, and how many there are."""

    by_kind: dict[str, tuple[int, int]]
    wrong: list[Pair]

    @property
    def precision(self) -> float:
        taken = sum(count for count, _ in self.by_kind.values())
        return self.by_kind["change"][0] / taken if taken else 1.0

    @property
    def recall(self) -> float:
        count, total = self.by_kind["change"]
        return count / total


def read_pairs(path: Path) -> list[Pair]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Pair(**json.loads(line)) for line in lines if line.strip()]


def measured(pairs: Sequence[Pair]) -> Measured:
    taken = [contradiction(pair.second, pair.first) is not None for pair in pairs]
    by_kind = {
        kind: (
            sum(found for pair, found in zip(pairs, taken, strict=True) if pair.kind == kind),
            sum(pair.kind == kind for pair in pairs),
        )
        for kind in KINDS
    }
    wrong = [
        pair for pair, found in zip(pairs, taken, strict=True) if found != (pair.kind == "change")
    ]
    return Measured(by_kind, wrong)
