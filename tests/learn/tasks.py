"""What is stored, what is asked, and which stored task is right for what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.evaluation.as_pattern import are_code, as_filter, as_pattern
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from tests.learn.carried import FORMS, Form
from tests.learn.kinds import PATTERNS, UNFILTERED, Kind


@dataclass(frozen=True)
class TaskSet:
    """Everything by number. ``right`` has, for each query, the stored tasks of its template.

    ``filters`` narrow each query's recall. ``kind``: what the tasks are stored as.
    """

    name: str
    stored: tuple[PatternContent, ...]
    queries: tuple[str, ...]
    right: tuple[frozenset[int], ...]
    filters: tuple[PatternFilter, ...]
    kind: Kind = PATTERNS


def read_set(folder: Path, filter_field: str = "", most: int = 0) -> TaskSet:
    """A retrieval set (docs/retrieval.md): a document judged relevant is of the query's template.

    Documents become patterns, and ``filter_field`` narrows, as in ``lot-grpc eval``. ``most``: so
    many documents are taken, those that answer a query first; 0 is all.

    Raises:
        EvalDataError: The folder holds no set, or too few queries to halve.
    """
    dataset = load_dataset(folder, filter_field)
    documents = [document for document in dataset.documents if document.text.strip()]
    answers = {one for query in dataset.queries for one, gain in query.judged.items() if gain > 0}
    if most:
        documents = sorted(documents, key=lambda one: one.id not in answers)[:most]
    number = {document.id: n for n, document in enumerate(documents)}
    right = [
        frozenset(number[one] for one, gain in query.judged.items() if gain > 0 and one in number)
        for query in dataset.queries
    ]
    decay = [n for n, relevant in enumerate(right) if relevant]
    if len(decay) < 2:
        raise EvalDataError(f"{folder}: the replay needs two queries that a document answers")
    code = are_code(documents)
    return TaskSet(
        dataset.name,
        tuple(as_pattern(document, filter_field, code=code) for document in documents),
        tuple(dataset.queries[n].text for n in decay),
        tuple(right[n] for n in decay),
        tuple(as_filter(dataset.queries[n], filter_field) for n in decay),
    )


def carried_set(forms: Sequence[Form] = FORMS) -> TaskSet:
    """The set in ``carried``, or of some of its forms."""
    stored: list[PatternContent] = []
    queries: list[str] = []
    right: list[frozenset[int]] = []
    for form in forms:
        mine = frozenset(range(len(stored), len(stored) + len(form.known)))
        stored += [PatternContent(form.stored.format(thing)) for thing in form.known]
        asked = [wording.format(thing) for wording in form.wordings for thing in form.others]
        queries += asked
        right += [mine] * len(asked)
    unfiltered = (UNFILTERED,) * len(queries)
    return TaskSet("carried", tuple(stored), tuple(queries), tuple(right), unfiltered)
