"""Formats the results of a run as tables, followed by a list of where peers are ahead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lot_grpc.evaluation.dataset import Dataset
from tests.bench import page
from tests.bench.peers.ours import FLUSHED, OURS
from tests.bench.report import median, percentile

LIMIT, CHROMA = "bare limit", "Chroma"
WITHIN, AHEAD = 2.0, 2.5
"""The goals: a recall takes at most 2 times as long as the bare limit, and a recall by Chroma takes
at least 2.5 times as long as ours."""
_WORDS = {"recall": "recalls", "store": "writes"}


class Measured:
    """The measurements of one store."""

    def __init__(self, name: str, version: str, durable: str, threads: bool) -> None:
        self.name = name
        self.version = version
        self.durable = durable
        self.threads = threads
        self.agreement = 0.0
        self.ndcg: float | None = None
        self.rounds: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
        """By kind of call, and whether there were several clients."""

    def rate(self, kind: str, *, several: bool) -> float | None:
        """Calls per second, the median of the rounds; None if it was not measured."""
        rounds = self.rounds[kind, several]
        return median([len(one["times"]) / one["seconds"] for one in rounds]) if rounds else None

    def milliseconds(self, kind: str, share: float) -> float:
        """A percentile of the calls of one client, over all rounds."""
        times = [seconds for one in self.rounds[kind, False] for seconds in one["times"]]
        return 1000 * percentile(times, share)

    def times(self, kind: str, other: Measured) -> float:
        """The median time of a call over that of another store, as the median of the rounds."""
        pairs = zip(self.rounds[kind, False], other.rounds[kind, False], strict=True)
        return median([median(a["times"]) / median(b["times"]) for a, b in pairs])

    def as_json(self) -> dict[str, Any]:
        kinds = {
            kind: {
                "rate": self.rate(kind, several=False),
                "rate_several": self.rate(kind, several=True),
                "p50_ms": self.milliseconds(kind, 0.5),
                "p99_ms": self.milliseconds(kind, 0.99),
                "calls": sum(len(one["times"]) for one in self.rounds[kind, False]),
            }
            for kind in _WORDS
            if self.rounds[kind, False]
        }
        about = {"version": self.version, "durable": self.durable, "agreement": self.agreement}
        return {**about, "ndcg@10": self.ndcg, **kinds}


def markdown(
    measured: Sequence[Measured], failed: dict[str, str], options: Any, dataset: Dataset | None
) -> str:
    """Both tables, whether the goals are met, and which stores are missing."""
    by_name = {one.name: one for one in measured}
    limit, ours = by_name.get(LIMIT), by_name[OURS]
    parts = [
        _table("recall", measured, limit, options, dataset),
        _table("store", measured, limit, options, None),
        _goals(ours, by_name),
        *(f"Not measured: {name}, {reason}" for name, reason in failed.items()),
    ]
    if not dataset:
        parts.append("nDCG@10 was not measured: no `--data`.")
    return "\n\n".join(parts)


def _table(
    kind: str,
    measured: Sequence[Measured],
    limit: Measured | None,
    options: Any,
    dataset: Dataset | None,
) -> str:
    word = _WORDS[kind]
    headings = [word, f"{word}/s", "p50", "p99", "x bare limit"]
    headings += [f"{word}/s, {options.clients} clients"]
    headings += [f"nDCG@10, {dataset.name}"] if dataset else []
    headings += ["survives"] if kind == "store" else []
    rows = []
    shown = [one for one in measured if one.rounds[kind, False]]
    for one in sorted(shown, key=lambda one: one.milliseconds(kind, 0.5)):
        several = one.rate(kind, several=True)
        row = [
            f"{one.name} {one.version}" if one.name != LIMIT else f"*bare limit* {one.version}",
            f"{one.rate(kind, several=False):,.0f}",
            f"{one.milliseconds(kind, 0.5):.1f} ms",
            f"{one.milliseconds(kind, 0.99):.1f} ms",
            f"{one.times(kind, limit):.2f}" if limit else "",
            "one only" if several is None else f"{several:,.0f}",
        ]
        if dataset:
            row.append("" if one.ndcg is None else f"{one.ndcg:.3f}")
        if kind == "store":
            row.append(one.durable)
        rows.append([f"**{cell}**" if one.name == OURS else cell for cell in row])
    return page.table(headings, rows)


def _goals(ours: Measured, by_name: dict[str, Measured]) -> str:
    lines = []
    if limit := by_name.get(LIMIT):
        ratio = ours.times("recall", limit)
        lines.append(
            f"- A recall takes {ratio:.2f} x the bare limit ({_verdict(ratio <= WITHIN)} ≤ 2)."
        )
        lines.append(f"- A write takes {ours.times('store', limit):.2f} x the bare limit.")
    if chroma := by_name.get(CHROMA):
        ratio = chroma.times("recall", ours)
        verdict = _verdict(ratio >= AHEAD)
        lines.append(f"- A recall by Chroma takes {ratio:.2f} x as long ({verdict} ≥ 2.5).")
    peers = [one for name, one in by_name.items() if name not in (OURS, FLUSHED, LIMIT)]
    for what, value in _COMPARED.items():
        lines += _ahead(f"lot-grpc in {what}", ours, peers, value)
    if flushed := by_name.get(FLUSHED):
        alike = [one for one in peers if one.durable == flushed.durable]
        lines += _ahead("lot-grpc with `LOT_SYNC=always` in writes", flushed, alike, _writes)
    return "\n".join(lines)


def _ahead(what: str, mine: Measured, peers: Sequence[Measured], value: _Value) -> list[str]:
    """The line that names the stores that are ahead, and by what factor; none if there are none."""
    own = value(mine) or 0.0
    ratios = {one.name: (value(one) or 0.0) / own for one in peers if own}
    ahead = [f"{name} ({ratio:.2f} x)" for name, ratio in ratios.items() if ratio > 1]
    return [f"- Ahead of {what}: {', '.join(ahead)}."] if ahead else []


def _writes(one: Measured) -> float:
    return 1 / one.milliseconds("store", 0.5)


_Value: TypeAlias = Callable[[Measured], float | None]
_COMPARED: dict[str, _Value] = {
    "recalls of one client": lambda one: 1 / one.milliseconds("recall", 0.5),
    "recalls of several clients": lambda one: one.rate("recall", several=True),
    "writes of one client": _writes,
    "writes of several clients": lambda one: one.rate("store", several=True),
    "nDCG@10": lambda one: one.ndcg,
}


def _verdict(met: bool) -> str:
    return "goal met:" if met else "goal missed:"
