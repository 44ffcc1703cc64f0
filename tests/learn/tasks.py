"""What is stored, what is asked, and which stored task is right for what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from tests.learn.carried import FORMS, Form


@dataclass(frozen=True)
class TaskSet:
    """Everything by number. ``right`` has, for each query, the stored tasks of its template."""

    name: str
    stored: tuple[str, ...]
    queries: tuple[str, ...]
    right: tuple[frozenset[int], ...]


def read_set(folder: Path) -> TaskSet:
    """A retrieval set (docs/retrieval.md): a document judged relevant is of the query's template.

    Raises:
        EvalDataError: The folder holds no set, or too few queries to halve.
    """
    dataset = load_dataset(folder)
    documents = [document for document in dataset.documents if document.text.strip()]
    number = {document.id: n for n, document in enumerate(documents)}
    right = [
        frozenset(number[one] for one, gain in query.judged.items() if gain > 0 and one in number)
        for query in dataset.queries
    ]
    kept = [n for n, relevant in enumerate(right) if relevant]
    if len(kept) < 2:
        raise EvalDataError(f"{folder}: the replay needs two queries that a document answers")
    return TaskSet(
        dataset.name,
        tuple(document.text for document in documents),
        tuple(dataset.queries[n].text for n in kept),
        tuple(right[n] for n in kept),
    )


def carried_set(forms: Sequence[Form] = FORMS) -> TaskSet:
    """The set in ``carried``, or of some of its forms."""
    stored: list[str] = []
    queries: list[str] = []
    right: list[frozenset[int]] = []
    for form in forms:
        mine = frozenset(range(len(stored), len(stored) + len(form.known)))
        stored += [form.stored.format(thing) for thing in form.known]
        asked = [wording.format(thing) for wording in form.wordings for thing in form.others]
        queries += asked
        right += [mine] * len(asked)
    return TaskSet("carried", tuple(stored), tuple(queries), tuple(right))
