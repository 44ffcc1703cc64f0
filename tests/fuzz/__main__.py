"""``python -m tests.fuzz``: does the service stay up, whatever it is sent?

A real server (Edge in a temporary folder, the real model) is sent calls of every RPC, made from a
seed and from the contract: good ones, ones at and over every bound, bytes that are no message,
lists of 100,000 items, code that costs a parser the most; then what no gRPC library sends. Half of
the calls go to a server without authentication and half to one with it, where some carry no valid
key or one that does not suffice. After each 600 calls it has to be healthy, to save and to recall.
At the end a table tells of each RPC the slowest call and the one that took the most memory beyond
what was taken before, with its number: ``--only RPC --replay NUMBER`` and the same seed make that
call alone.

Wrong is: INTERNAL or UNKNOWN, an error without a reason of the contract, a call that its key does
not allow, a call of over 60 s, more than 2 GiB in memory, memory that grows by more than a third
from the second quarter to the last, a traceback or an error in the log, over 1,000 bytes of log a
call, anything acknowledged that is not there at the end, and a server that does not stop cleanly.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.process import serve
from tests.fuzz.calls import RPCS
from tests.fuzz.keys import Keys
from tests.fuzz.run import MIB, OFFLINE, Fuzz


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, help="of all that is sent; default: any")
    parser.add_argument("--calls", type=int, default=100_000, help="how many; default 100000")
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most; default 3600")
    parser.add_argument(
        "--keys", choices=("off", "on", "both"), default="both", help="authentication; default both"
    )
    parser.add_argument("--only", metavar="RPC", help="such as RecordSteps; default: every one")
    parser.add_argument("--replay", type=int, metavar="NUMBER", help="make one call of it alone")
    return parser.parse_args()


def main() -> int:
    """Run it; 0 if all is well."""
    options = _options()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    rpcs = [rpc for rpc in RPCS if options.only in (None, rpc, rpc.partition(".")[2])]
    if not rpcs:
        print(f"error: no RPC is named {options.only}; one of: {', '.join(RPCS)}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="lot-fuzz-"))
    print(f"seed {seed}, in {folder}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the server, too
    runs = [False, True] if options.keys == "both" else [options.keys == "on"]
    try:
        wrong = [_run(options, seed, rpcs, folder, keyed=keyed) for keyed in runs]
    except KeyboardInterrupt:
        print(f"the run broke off; what it left is in {folder}", file=sys.stderr)
        return 130
    if any(wrong):
        print(f"what it left is in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _run(
    options: argparse.Namespace, seed: int, rpcs: Sequence[str], folder: Path, *, keyed: bool
) -> int:
    """The calls of one server; how many kinds of wrong there were."""
    folder /= "with-keys" if keyed else "without-keys"
    folder.mkdir()
    settings = OFFLINE | ({"LOT_AUTH_KEYS": str(folder / "keys.json")} if keyed else {})
    keys = Keys(folder / "data", settings) if keyed else None
    served = serve(folder / "data", folder / "server.log", settings)
    try:
        fuzz = Fuzz(served, seed, lambda text: print(text, flush=True), rpcs, keys)
        if options.replay is not None:
            asyncio.run(fuzz.replay(options.replay))
        else:
            parts = 2 if options.keys == "both" else 1
            asyncio.run(fuzz.run(-(-options.calls // parts), options.seconds / parts))
        fuzz.finish()
    finally:
        if served.process.poll() is None:
            served.kill()
    print("\n".join(fuzz.table()))
    resident = ", ".join(f"{size // MIB}" for size in fuzz.levels())
    print(
        f"seed {seed}, {folder.name}: {fuzz.made} calls, {fuzz.most_memory // MIB} MiB at most, "
        f"{resident} MiB by quarter, {len(fuzz.wrong)} wrong",
        flush=True,
    )
    return len(fuzz.wrong)


if __name__ == "__main__":
    sys.exit(main())
