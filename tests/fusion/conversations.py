"""What two people tell each other over some months, and questions about it in other words.

``conversations.txt`` has a turn a line, in order, and behind it the questions that it answers. The
questions were split in halves by chance: what was decided was decided by the first.
"""

from __future__ import annotations

import random
from pathlib import Path

from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery

_FILE = Path(__file__).with_name("conversations.txt")


def conversations(half: int | None = None) -> Dataset:
    """The turns, with all questions or one half of them (0, 1)."""
    documents: list[Document] = []
    queries: list[EvalQuery] = []
    for number, line in enumerate(_FILE.read_text().splitlines()):
        turn, *questions = line.split(" | ")
        documents.append(Document(f"t{number}", turn))
        for question in questions:
            queries.append(EvalQuery(f"q{len(queries)}", question, {f"t{number}": 1.0}))
    random.Random(0).shuffle(queries)
    middle = len(queries) // 2
    parts = {None: queries, 0: queries[:middle], 1: queries[middle:]}
    return Dataset("conversations", _FILE.parent, tuple(documents), tuple(parts[half]))
