"""What is measured, against what. Rounds of the two servers alternate.

A ratio is taken within a pair of rounds, since the machine is not the same a second later; the
median of the rounds' ratios is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count as counter
from typing import Any

from tests.bench.data import BATCH_OF_EVENTS
from tests.bench.processes import BenchError, Client, Server
from tests.bench.report import Figure, median, milliseconds, percentile

Answer = dict[str, Any]

BATCH_OF_PATTERNS = 100
_WARM_UP = 30
_RATIO = "{:.2f} x bare"


@dataclass(frozen=True)
class Sizes:
    """How much of each: rounds, and calls in one."""

    rounds: int
    single: int
    many: int
    batches: int
    events: int


QUICK = Sizes(rounds=3, single=120, many=400, batches=4, events=10_000)
NORMAL = Sizes(rounds=8, single=200, many=600, batches=5, events=20_000)


class Bench:
    """Measures a real and a bare server that stand on equal stores."""

    def __init__(self, client: Client, real: Server, bare: Server, sizes: Sizes) -> None:
        self._client = client
        self._real = real
        self._bare = bare
        self._sizes = sizes
        self._numbers = counter(1_000_000, 10_000)

    def check(self) -> None:
        """See that both answer the same, with no ranking to tell them apart; warm both up."""
        first = next(self._numbers)
        real = self._client.do("answers", address=self._real.address, first=first)["ids"]
        bare = self._client.do("bare_answers", address=self._bare.address, first=first)["ids"]
        if len(real) != len(bare) or not real:
            raise BenchError(f"the servers do not do the same: {real} and {bare}")
        for kind in ("recall", "save"):
            self._pair(kind, _WARM_UP)

    def recall_one(self) -> Figure:
        real, bare = self._rounds(lambda: self._pair("recall", self._sizes.single))
        return _slower("RecallPatterns, one client", real, bare, 1.25)

    def recall_many(self, clients: int = 16) -> list[Figure]:
        real, bare = self._rounds(lambda: self._pair("recall", self._sizes.many, clients=clients))
        times = _pooled(real)
        p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
        bare_p99 = percentile(_pooled(bare), 0.99) / percentile(_pooled(bare), 0.5)
        name = f"RecallPatterns, {clients} clients"
        return [
            _faster(f"{name}, rate", real, bare, self._sizes.many, 0.8, "calls/s"),
            Figure(
                f"{name}, tail",
                f"p99 {p99 / p50:.2f} x p50",
                "≤ 3",
                p99 <= 3 * p50,
                f"p50 {milliseconds(p50)}, p99 {milliseconds(p99)}; bare {bare_p99:.2f} x p50",
                {"p50": p50, "p99": p99},
            ),
        ]

    def recall_repeated(self) -> list[Figure]:
        """Recalls whose query vectors both servers have cached."""
        real, bare = self._rounds(lambda: self._pair("recall", self._sizes.single, distinct=20))
        p50, bare_p50 = percentile(_pooled(real), 0.5), percentile(_pooled(bare), 0.5)
        name = "RecallPatterns, repeated queries"
        return [
            _slower(f"{name}, against the bare server", real, bare, 1.25),
            Figure(
                name,
                f"p50 {milliseconds(p50)}",
                "≤ 2 ms",
                p50 <= 0.002,
                f"bare {milliseconds(bare_p50)}",
                {"p50": p50, "bare_p50": bare_p50},
            ),
        ]

    def save(self) -> list[Figure]:
        real, bare = self._rounds(lambda: self._pair("save", self._sizes.single))
        echo = self._calls(self._bare, "echo", next(self._numbers), self._sizes.single)
        return [
            _slower("SavePattern, one client", real, bare, 1.5),
            Figure("an echo call, one client", f"p50 {milliseconds(median(echo['times']))}"),
        ]

    def batch(self) -> Figure:
        calls = self._sizes.batches

        def pair() -> tuple[Answer, Answer]:
            # Numbers of batches, not of patterns.
            return self._pair("batch", calls, size=BATCH_OF_PATTERNS)

        real, bare = self._rounds(pair)
        name = f"BatchSavePatterns, {BATCH_OF_PATTERNS} a call"
        return _faster(name, real, bare, calls * BATCH_OF_PATTERNS, 0.8, "patterns/s")

    def events(self, window: int = 8) -> list[Figure]:
        size = self._sizes.events

        def pair() -> tuple[Answer, Answer]:
            name = f"bench-{next(self._numbers)}"
            real, bare = self._real.address, self._bare.address
            return (
                self._client.do("stream", address=real, episode_id=name, count=size, window=window),
                self._client.do("store_events", address=bare, episode_ids=[name], count=size),
            )

        real, bare = self._rounds(pair)
        name = f"RecordEvents, one stream, batches of {BATCH_OF_EVENTS}"
        rate = size / median([one["seconds"] for one in real])
        packed = size / median([one["packed_seconds"] for one in bare])
        against = _faster(f"{name}, against the bare store", real, bare, size, 0.6, "events/s")
        return [
            replace(against, beside=f"{against.beside}, packed like lot-grpc {packed:,.0f}"),
            Figure(name, f"{rate:,.0f} events/s", "≥ 15,000", rate >= 15_000, "", {"rate": rate}),
        ]

    def replay(self) -> Figure:
        size = self._sizes.events
        asked = {
            "address": self._real.address,
            "episode_id": f"bench-{next(self._numbers)}",
            "count": size,
        }
        self._client.do("stream", **asked, window=8)
        rounds = [self._client.do("replay", **asked) for _ in range(self._sizes.rounds)]
        rate = size / median([one["seconds"] for one in rounds])
        return Figure(
            "ReplayEpisode, one client",
            f"{rate:,.0f} events/s",
            "≥ 40,000",
            rate >= 40_000,
            f"{size / rounds[0]['answers']:.0f} events a message",
            {"rate": rate},
        )

    def outcomes(self, clients: int = 8) -> list[Figure]:
        count = self._sizes.many

        def one(server: Server, **more: Any) -> Answer:
            first = next(self._numbers)
            asked = {"first": first, "count": count, "clients": clients, **more}
            return self._client.do("outcomes", address=server.address, **asked)

        real, bare = self._rounds(lambda: (one(self._real), one(self._bare, bare=True)))
        named = [one(self._real, request_ids=True) for _ in range(self._sizes.rounds)]
        plain = count / median([each["seconds"] for each in real])
        with_id = count / median([each["seconds"] for each in named])
        name = f"RecordOutcome with retrieval_id, {clients} clients"
        return [
            _faster(f"{name}, against the bare writes", real, bare, count, 0.6, "calls/s"),
            Figure(
                name,
                f"{plain:,.0f}/s",
                "≥ 1,000",
                plain >= 1000,
                f"with request_id {with_id:,.0f}/s",
                {"rate": plain, "rate_with_request_id": with_id},
            ),
        ]

    # --- inside ---------------------------------------------------------------------------------

    def _rounds(
        self, pair: Callable[[], tuple[Answer, Answer]]
    ) -> tuple[list[Answer], list[Answer]]:
        pairs = [pair() for _ in range(self._sizes.rounds)]
        return [real for real, _ in pairs], [bare for _, bare in pairs]

    def _pair(self, kind: str, count: int, **more: Any) -> tuple[Answer, Answer]:
        """A round of each, with the same requests, which neither has seen."""
        first = next(self._numbers)
        return (
            self._calls(self._real, kind, first, count, **more),
            self._calls(self._bare, kind, first, count, bare=True, **more),
        )

    def _calls(self, server: Server, kind: str, first: int, count: int, **more: Any) -> Answer:
        if kind == "echo":
            more["bare"] = True
        return self._client.do(
            "calls", address=server.address, kind=kind, first=first, count=count, **more
        )


def rerank(times: dict[str, list[float]], texts: int) -> Figure:
    """The reranker against the bare cross-encoder that gives the same scores."""
    ours, bare, batches = times["ours"], times["singly"], times["batches"]
    ratio = median([a / b for a, b in zip(ours, bare, strict=True)])
    return Figure(
        f"rerank, {texts} short texts",
        f"p50 {_RATIO.format(ratio)}",
        "≤ 1.1",
        ratio <= 1.1,
        f"{milliseconds(median(ours))}, bare {milliseconds(median(bare))}; with other scores, "
        f"a batch on each thread, {milliseconds(median(batches))}",
        {"ratio": ratio, **{name: median(found) for name, found in times.items()}},
    )


def recall_reranked(recall: list[float], rerank: list[float]) -> Figure:
    """What ``rerank`` adds to a recall."""
    p50, without = median(rerank), median(recall)
    return Figure(
        "RecallPatterns with rerank, one client",
        f"p50 {milliseconds(p50)}",
        beside=f"without {milliseconds(without)}: reranking adds {milliseconds(p50 - without)}",
        values={"p50": p50, "p50_without": without},
    )


def start(what: str, ready: list[float], parts: list[float]) -> Figure:
    """Start to ready against the parts that it cannot do without, both from the process's start."""
    ratio = median([a / b for a, b in zip(ready, parts, strict=True)])
    return Figure(
        f"start to ready, {what}, against a process that loads the model and opens the store",
        f"{ratio:.2f} x",
        "≤ 2",
        ratio <= 2,
        f"{median(ready):.2f} s, the parts {median(parts):.2f} s; both with the interpreter's "
        "start and their imports",
        {"ratio": ratio, "ready": ready, "parts": parts},
    )


def context(p50: dict[str, list[float]]) -> list[Figure]:
    """The context of a task against a recall, round by round."""
    recall = p50["recall"]
    found = []
    for kind, at_most in (("context", 2.0), ("context of an error", None)):
        ratio = median([a / b for a, b in zip(p50[kind], recall, strict=True)])
        beside = f"p50 {milliseconds(median(p50[kind]))}, recall {milliseconds(median(recall))}"
        values = {"ratio": ratio, "p50": p50[kind], "p50_recall": recall}
        name = "GetTaskContext, one client" + (", of an error" if at_most is None else "")
        target, met = ("", None) if at_most is None else (f"≤ {at_most:g}", ratio <= at_most)
        found.append(Figure(name, f"{ratio:.2f} x RecallPatterns", target, met, beside, values))
    return found


def _pooled(rounds: list[Answer]) -> list[float]:
    return [seconds for one in rounds for seconds in one["times"]]


def _slower(what: str, real: list[Answer], bare: list[Answer], at_most: float) -> Figure:
    """Medians of single calls."""
    ratio = median(
        [median(a["times"]) / median(b["times"]) for a, b in zip(real, bare, strict=True)]
    )
    p50, bare_p50 = median(_pooled(real)), median(_pooled(bare))
    return Figure(
        what,
        f"p50 {_RATIO.format(ratio)}",
        f"≤ {at_most}",
        ratio <= at_most,
        f"{milliseconds(p50)}, bare {milliseconds(bare_p50)}",
        {"ratio": ratio, "p50": p50, "bare_p50": bare_p50},
    )


def _faster(
    what: str, real: list[Answer], bare: list[Answer], done: int, at_least: float, unit: str
) -> Figure:
    """Rates, ``done`` things a round."""
    ratio = median([b["seconds"] / a["seconds"] for a, b in zip(real, bare, strict=True)])
    rate = done / median([one["seconds"] for one in real])
    bare_rate = done / median([one["seconds"] for one in bare])
    return Figure(
        what,
        _RATIO.format(ratio),
        f"≥ {at_least}",
        ratio >= at_least,
        f"{rate:,.0f} {unit}, bare {bare_rate:,.0f}",
        {"ratio": ratio, "rate": rate, "bare_rate": bare_rate},
    )
