"""Two hundred agents that record at once, against the bare store, alone and while others recall."""

from __future__ import annotations

from typing import Any

from tests.bench.agents import names
from tests.bench.processes import Client, Server
from tests.bench.report import Figure, median, milliseconds, percentile

AGENTS, BATCH, WINDOW = 200, 10, 4
RECALLS = 16
IDLE_STREAMS = 400
_KIB = 1024
_NAME = f"RecordEvents, {AGENTS} agents, batches of {BATCH}"
_BESIDE = f"while {RECALLS} clients recall"


class AgentBench:
    """Measures a real and a bare server. Each run records new episodes, and all are read back."""

    def __init__(self, client: Client, real: Server, bare: Server, *, quick: bool) -> None:
        self._client = client
        self._real = real
        self._bare = bare
        self._events, self._rounds = (100, 1) if quick else (500, 2)
        self._paced_seconds = 4 if quick else 8
        self._runs = 0
        self._checked = 0

    def figures(self) -> list[Figure]:
        self._record(BATCH)  # both warm up
        rounds = [self._round() for _ in range(self._rounds)]
        return [
            self._throughput(_NAME, [one["alone"] for one in rounds], 0.7),
            _acknowledged(f"{_NAME}, at half that rate", [one["half"] for one in rounds]),
            self._throughput(f"{_NAME}, {_BESIDE}", [one["recall"] for one in rounds], None),
            _acknowledged(
                f"{_NAME}, at half that rate, {_BESIDE}", [one["recall_half"] for one in rounds]
            ),
            _recalled(
                f"RecallPatterns, {RECALLS} clients, while {AGENTS} agents record at half the rate "
                "they reach during recalls",
                [one["recall_half"] for one in rounds],
            ),
            Figure("their events, read back", f"{self._checked:,} in order, each once"),
        ]

    def _round(self) -> dict[str, dict[str, Any]]:
        """Each way once, the bare store before each that is compared with it."""
        alone = self._against_bare(recalls=0)
        half = self._paced(alone["rate"] / 2)
        recall = self._against_bare(recalls=RECALLS)
        recall_half = self._paced(recall["rate"] / 2, recalls=RECALLS)
        return {"alone": alone, "half": half, "recall": recall, "recall_half": recall_half}

    def _against_bare(self, recalls: int) -> dict[str, Any]:
        ids = names(f"bare-{self._runs}", AGENTS)
        bare = self._client.do(
            "store_events",
            address=self._bare.address,
            episode_ids=ids,
            count=self._events,
            size=BATCH,
        )
        done = self._record(self._events, recalls=recalls)
        events = AGENTS * self._events
        rates = {
            "rate": events / done["seconds"],
            "bare_rate": events / bare["seconds"],
            "packed_rate": events / bare["packed_seconds"],
        }
        return {**done, **rates, "ratio": rates["rate"] / rates["bare_rate"]}

    def _paced(self, rate: float, recalls: int = 0) -> dict[str, Any]:
        """Record at a rate, for long enough to measure a p99."""
        batches = max(1, round(rate * self._paced_seconds / AGENTS / BATCH))
        return self._record(batches * BATCH, rate=rate, recalls=recalls)

    def _record(self, events: int, rate: float = 0, recalls: int = 0) -> dict[str, Any]:
        """One run, and the proof that all it recorded is there."""
        self._runs += 1
        run = {"address": self._real.address, "prefix": f"agent-{self._runs}", "count": AGENTS}
        done = self._client.do(
            "record_agents",
            **run,
            first=6_000_000 + 100_000 * self._runs,
            recalls=recalls,
            events=events,
            batch=BATCH,
            window=WINDOW,
            rate=rate,
        )
        self._checked += self._client.do("check_agents", **run, events=events)["events"]
        return done

    def _throughput(
        self, name: str, rounds: list[dict[str, Any]], at_least: float | None
    ) -> Figure:
        ratio = median([one["ratio"] for one in rounds])
        keys = ("rate", "bare_rate", "packed_rate")
        rate, bare, packed = (median([one[key] for one in rounds]) for key in keys)
        rates = {"rate": rate, "bare_rate": bare, "packed_rate": packed}
        values = {"ratio": ratio, **rates, **_times(rounds)}
        return Figure(
            f"{name}, against the bare store",
            f"{ratio:.2f} x bare",
            "" if at_least is None else f"≥ {at_least}",
            None if at_least is None else ratio >= at_least,
            f"{rate:,.0f} events/s, bare {bare:,.0f}, packed like lot-grpc {packed:,.0f}; "
            f"{_told(values)}",
            values,
        )


def idle(client: Client, server: Server) -> Figure:
    """What an open stream that says nothing takes of a server that had none before."""
    client.do("open_idle", address=server.address, prefix="warm", count=8)
    before = server.resident_bytes
    client.do("open_idle", address=server.address, prefix="idle", count=IDLE_STREAMS)
    taken = (server.resident_bytes - before) / IDLE_STREAMS
    client.do("close_idle")
    return Figure(
        "memory, an idle stream",
        f"{taken / _KIB:.0f} KB",
        "≤ 100 KB",
        taken <= 100 * _KIB,
        f"{IDLE_STREAMS} streams, each with the record of its episode",
        {"bytes": taken},
    )


def _acknowledged(name: str, rounds: list[dict[str, Any]]) -> Figure:
    values = _times(rounds)
    p99 = values["p99"]
    shown = f"p99 {milliseconds(p99)}"
    return Figure(name, shown, "≤ 50 ms", p99 <= 0.05, _told(values), values)


def _recalled(name: str, rounds: list[dict[str, Any]]) -> Figure:
    values = _times(rounds)
    p50, p99 = values["recall_p50"], values["recall_p99"]
    shown = f"p99 {p99 / p50:.2f} x p50"
    return Figure(name, shown, "≤ 3", p99 <= 3 * p50, _told(values), values)


def _times(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Percentiles of acknowledgements and recalls, over all rounds."""
    found = {}
    for key, prefix in (("times", ""), ("recalls", "recall_")):
        pooled = [seconds for one in rounds for seconds in one.get(key, ())]
        if pooled:
            found[f"{prefix}p50"] = percentile(pooled, 0.5)
            found[f"{prefix}p99"] = percentile(pooled, 0.99)
    if "recall_p50" in found:
        seconds = sum(one["seconds"] for one in rounds)
        found["recall_rate"] = sum(len(one["recalls"]) for one in rounds) / seconds
    return found


def _told(values: dict[str, float]) -> str:
    told = f"acknowledged p50 {milliseconds(values['p50'])}, p99 {milliseconds(values['p99'])}"
    if "recall_p99" in values:
        told += (
            f"; recall p50 {milliseconds(values['recall_p50'])}, "
            f"p99 {milliseconds(values['recall_p99'])}, {values['recall_rate']:,.0f}/s"
        )
    return told
