"""What keys and metrics cost: a server with both against one with neither, on equal stores."""

from __future__ import annotations

from pathlib import Path

from tests.auth.keys import add_key
from tests.bench.figures import Sizes
from tests.bench.processes import Client, Server
from tests.bench.report import Figure, median, milliseconds


def settings(folder: Path) -> tuple[dict[str, str], str]:
    """Those of the guarded server, and a key for it."""
    keys = folder / "keys.json"
    key = add_key(keys, name="bench", role="admin", namespaces=("*",))
    return {"LOT_AUTH_KEYS": str(keys), "LOT_METRICS_ADDRESS": "127.0.0.1:0"}, key


def measure(client: Client, plain: Server, guarded: Server, key: str, sizes: Sizes) -> list[Figure]:
    """Rounds of both, which send the same; each is first in turn."""
    found = []
    for kind, clients, size in (
        ("recall", 1, sizes.single),
        ("recall", 16, sizes.many),
        ("save", 1, sizes.single),
    ):
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(-1, 4 * sizes.rounds):
            first = 8_000_000 + 10_000 * number + 1_000_000 * clients  # neither has seen it
            for place in (0, 1) if number % 2 else (1, 0):
                server, sent = ((plain, ""), (guarded, key))[place]
                asked = {"kind": kind, "first": first, "count": size, "clients": clients}
                done = client.do("calls", address=server.address, key=sent, **asked)
                if number >= 0:  # else it warms up
                    seconds[place].append(done["seconds"] / size)
        found.append(_figure(kind, clients, *seconds))
    return found


def _figure(kind: str, clients: int, plain: list[float], keyed: list[float]) -> Figure:
    """What keys and metrics add to a call; seconds a call, round by round."""
    ratio = median([b / a for a, b in zip(plain, keyed, strict=True)])
    name = "RecallPatterns" if kind == "recall" else "SavePattern"
    count = "one client" if clients == 1 else f"{clients} clients"
    return Figure(
        f"{name}, {count}, with keys and metrics",
        f"{ratio:.3f} x without",
        "≤ 1.03",
        ratio <= 1.03,
        f"{milliseconds(median(keyed))} a call, without {milliseconds(median(plain))}",
        {"ratio": ratio, "plain": plain, "keyed": keyed},
    )
