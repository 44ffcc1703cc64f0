"""``python -m tests.soak``: does nothing get lost, doubled or out of order, whatever happens?

A real server (Edge in a temporary folder, the real model) stands behind a proxy of ours. Agents
record, writers save, count and recall, watchers are told, a replayer replays, each in a process of
its own, at a bounded and steady pace. At random, from a seed: connections are cut in the middle of
messages or stalled, clients are killed and started again, the server is stopped by SIGTERM and by
SIGKILL and started again on its folder and port. Each client notes in a journal what it is about to
do and what was acknowledged. At the end nothing is hurt any more, everyone finishes, and the
journals are compared with what the server has, over the API and in its folder.

Memory. Resident memory of the server's process (as `ps` tells it) is taken each second. The median
of the third quarter of the run is compared with that of the fourth; 5 % is allowed. The same holds
for its anonymous part, where the kernel tells it: after a restart four fifths are mapped files, and
a leak would be lost among them. The comparison is fair because both quarters are of one process at
like load: the server is stopped only in the first 40 %, so that its warm-up (model, caches, all
tasks of the mix) lies before the third quarter, and connections are cut and clients killed at the
same pace in both. Medians, since a single moment may hold the buffers of a burst. What the load
stores is counted with it (index and mapped files of each event and request that is kept): so that
this does not hide a leak, or pass for one, the load is a quarter from 40 % on. In a run of
less than five minutes anonymous memory is told and not judged: it is the warm-up's.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.soak.run import Soak


def main() -> int:
    """Run it; 0 if all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; default 10")
    parser.add_argument("--seed", type=int, default=None, help="of all that happens; default: any")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="lot-soak-"))
    print(f"seed {seed}, {options.minutes:g} min, in {folder}", flush=True)
    soak = Soak(folder, options.minutes * 60, seed, lambda text: print(text, flush=True))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end what was started, too
    try:
        verdict = asyncio.run(soak.run())
    except BaseException as error:
        print(f"the run broke off; what it left is in {folder}", file=sys.stderr)
        if isinstance(error, KeyboardInterrupt):
            return 130
        raise
    for wrong in verdict.wrong[:50]:
        print(f"wrong: {wrong}", flush=True)
    if verdict.wrong:
        print(f"what it left is in {folder}")
    else:
        shutil.rmtree(folder)
    print(verdict.line)
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
