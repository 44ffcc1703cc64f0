"""How well distilling finds templates, through the services with the default model.

    python -m tests.distilling.measure [FOLDER:FIELD ...]

Beside the tasks of ``families``, those of retrieval sets in a folder: of its ``corpus.jsonl`` and,
where they have FIELD, ``queries.jsonl``; FIELD names the template of a task.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from lot_grpc.embedding.fastembed import open_fastembed
from tests.distilling.running import Labelled, distilled, tasks_of


def _read(folder: str, field: str) -> Labelled:
    """Queries of a set have templates too where the set says so by a number."""
    rows = [
        json.loads(line)
        for name in ("corpus.jsonl", "queries.jsonl")
        for line in (Path(folder) / name).read_text().splitlines()
        if name == "corpus.jsonl" or field == "group"
    ]
    return [(row["text"], json.dumps(row[field])) for row in rows]


async def main() -> None:
    sets = {f"{half}, groups of {least}": (tasks_of(half), least)
            for half in ("dev", "held") for least in (3, 2)}  # fmt: skip
    for argument in sys.argv[1:]:
        folder, field = argument.rsplit(":", 1)
        sets[Path(folder).name] = (_read(folder, field), 3)
    embedder = await open_fastembed()
    try:
        print("set                 groups  in groups   pure  of main  found  merged")
        for name, (tasks, least) in sets.items():
            one = await distilled(embedder, tasks, least)
            print(
                f"{name:<20}{len(one.groups):>6}{sum(map(len, one.groups)):>11}{one.pure:>7.3f}"
                f"{one.in_main:>9.3f}{one.found:>7.3f}{len(one.merged()):>8}"
            )
    finally:
        await embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
