"""Prints precision and recall of the rule of conflicts on a table of pairs, by kind.

``python -m tests.conflicts FILE``: one JSON object a line, with kind (change, paraphrase or other),
first and second.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lot_grpc.lexical.conflicts import contradiction
from tests.conflicts.measure import Pair, measured, read_pairs


def main(path: Path) -> None:
    pairs = read_pairs(path)
    found = measured(pairs)
    for pair in found.wrong:
        said = contradiction(pair.second, pair.first)
        print(
            "missed" if pair.kind == "change" else "false ", json.dumps(vars_of(pair)), said or ""
        )
    for kind, (count, total) in found.by_kind.items():
        print(f"{kind:11} {count:3} of {total} taken for a change")
    print(f"precision {found.precision:.3f}, recall {found.recall:.3f}")


def vars_of(pair: Pair) -> list[str]:
    return [pair.kind, pair.first, pair.second]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("pairs.jsonl"))
