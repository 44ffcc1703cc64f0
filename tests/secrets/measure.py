"""Precision and recall of the rules on a set of texts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lot_grpc.redaction import SecretFinder
from tests.secrets import fit, held_out, keys
from tests.secrets.keys import Make


@dataclass(frozen=True)
class Case:
    """A text; ``secret`` and the rule that should find it are empty if there is none."""

    text: str
    secret: str = ""
    rule: str = ""


@dataclass
class Measured:
    """How many secrets there are, were taken out, and texts in which too much was found, by rule.

    ``named``: taken out by the rule that they were made for. ``wrong``: findings that are none.
    """

    total: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed_cases: list[Case] = field(default_factory=list)
    wrong_cases: list[tuple[str, Case]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found.total() / self.total.total()

    @property
    def precision(self) -> float:
        return self.found.total() / (self.found.total() + self.wrong.total())


def cases(name: str, draws: int = 3) -> list[Case]:
    """The cases of the set ``fit`` or ``held_out``; each context with so many drawn secrets."""
    table, made = (fit, keys.FIT) if name == "fit" else (held_out, keys.HELD_OUT)
    chance = random.Random(name)
    everywhere = dict.fromkeys(made, table.ANYWHERE)
    found = list(_cases(made, everywhere, chance, draws))
    placed = {kind: table.PLACED[kind.split()[0]] for kind in keys.PLACED}
    found += _cases(keys.PLACED, placed, chance, draws)
    return found + [Case(text) for text in table.NEGATIVES]


def _cases(
    made: Mapping[str, Make],
    contexts: Mapping[str, Iterable[str]],
    chance: random.Random,
    draws: int,
) -> Iterable[Case]:
    for kind, make in made.items():
        for context in contexts[kind]:
            for _ in range(draws):
                secret = make(chance)
                yield Case(context.format(secret=secret), secret, kind.split()[0])


def measured(finder: SecretFinder, found: Iterable[Case]) -> Measured:
    """What the rules find in these."""
    result = Measured()
    for case in found:
        redacted, _ = finder.redact(case.text)
        raw = case.text.encode()
        start = raw.find(case.secret.encode()) if case.secret else -1
        end = start + len(case.secret.encode())
        hits = finder.find(case.text)
        if case.secret:
            result.total[case.rule] += 1
            if any(hit.start <= start and end <= hit.end for hit in hits):
                result.found[case.rule] += 1
                result.named[case.rule] += f"[REDACTED:{case.rule}]" in redacted
            else:
                result.missed_cases.append(case)
        for hit in hits:
            if not (case.secret and hit.start < end and start < hit.end):
                result.wrong[hit.rule] += 1
                result.wrong_cases.append((hit.rule, case))
    return result
