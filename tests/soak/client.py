"""A client's process: ``python -m tests.soak.client ROLE NAME ADDRESS FOLDER SEED``."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from tests.soak.agent import Agent
from tests.soak.calls import Post
from tests.soak.journal import Journal
from tests.soak.recording import Flavour
from tests.soak.watcher import Replayer, Watcher
from tests.soak.writer import OpenStream


def main(role: str, name: str, address: str, folder: Path, seed: int) -> None:
    """Do what the role does until the run is over."""
    journal = Journal(folder / f"{name}.journal")
    post = Post(address, name, folder, journal, random.Random(seed))
    if role in {"agent", "writer"}:
        asyncio.run(_async_main(role, post))
    else:
        (Watcher if role == "watcher" else Replayer)(post).run()
    journal.write("done")


async def _async_main(role: str, post: Post) -> None:
    """Agents differ by their number: which recorder, and whether it keeps events in a file."""
    if role == "writer":
        await OpenStream(post).run()
        return
    number = int(post.name.rpartition("-")[2])
    flavour: Flavour = "threads" if number % 2 else "tasks"
    await Agent(post, flavour, spills=number % 4 >= 2).run()


if __name__ == "__main__":
    _, _role, _name, _address, _folder, _seed = sys.argv
    main(_role, _name, _address, Path(_folder), int(_seed))
