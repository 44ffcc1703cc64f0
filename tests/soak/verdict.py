"""How a soak went, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """How a soak went. ``wrong`` empty: well. ``growth``: of each kind of memory, as a share."""

    counts: dict[str, int]
    growth: dict[str, float]
    seed: int
    seconds: float
    wrong: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """All counts, and `OK` or what is wrong first."""
        parts = [told_counts(self.counts)]
        parts += [f"{what} memory {share:+.1%}" for what, share in self.growth.items()]
        parts += [f"seed {self.seed}", f"{self.seconds:.0f} s"]
        end = "OK"
        if self.wrong:
            end = f"WRONG ({len(self.wrong)}): {self.wrong[0].splitlines()[0]}"
        return " · ".join([*parts, end])


def told_counts(counts: Mapping[str, int]) -> str:
    """Counts with their names."""
    return " · ".join(f"{name} {count:,}" for name, count in counts.items())
