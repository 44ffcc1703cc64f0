"""How well failures are grouped by cause, through the services with the default model.

    python -m tests.failures.measure

Of each set of causes: 40 failures a cause, 12 that tell nothing, 48 successes.
"""

from __future__ import annotations

import asyncio

from lot_grpc.embedding.fastembed import open_fastembed
from tests.failures.causes import DEVELOPMENT
from tests.failures.fourth import FOURTH
from tests.failures.held_out import HELD_OUT
from tests.failures.made import planted
from tests.failures.near import NEAR
from tests.failures.running import judged, open_planted
from tests.failures.second import SECOND
from tests.failures.third import THIRD

SETS = {
    "development": DEVELOPMENT,
    "second development": SECOND,
    "all four": {**DEVELOPMENT, **SECOND, **THIRD, **FOURTH},
    "held out": HELD_OUT,
    "near causes": NEAR,
    "third development": THIRD,
    "fourth development": FOURTH,
}
SEEDS = (1, 2, 3)


async def main() -> None:
    embedder = await open_fastembed()
    try:
        print("set                 seed  groups  purity  least pure  least complete")
        for name, causes in SETS.items():
            for seed in SEEDS:
                episodes = planted(causes, seed=seed)
                one = await judged(await open_planted(embedder, episodes), episodes)
                print(
                    f"{name:<20}{seed:>4}{one.groups:>8}{one.purity:>8.3f}"
                    f"{one.least_pure:>12.3f}{one.least_complete:>16.3f}"
                )
    finally:
        await embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
