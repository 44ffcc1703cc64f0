"""Turns a document into an error solution, within the limits of the contract. Nothing is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.search_text import joined
from lot_grpc.evaluation.dataset import Dataset, Document
from lot_grpc.evaluation.errors import EvalDataError

MESSAGE, WHERE, SOLUTION, LANGUAGE = "message", "where", "solution", "language"
MAX_BYTES: Final = {"message": 65_536, "solution": 65_536, "language": 64}
"""The limits of ``lot.v1.ErrorSolution``; the services leave such rules to the contract."""


def are_errors(documents: Sequence[Document]) -> bool:
    """Whether a set is of errors: whether all of its documents have a message and a solution.

    Since these are separate fields, no set qualifies by chance.
    """
    return bool(documents) and all(
        _text(document, MESSAGE) and _text(document, SOLUTION) for document in documents
    )


def as_error_solution(document: Document) -> ErrorSolutionContent:
    """The error solution for a document: its message, with the line it points at.

    Raises:
        EvalDataError: It exceeds a limit of the contract.
    """
    content = ErrorSolutionContent(
        error_message=joined(_text(document, MESSAGE), _text(document, WHERE)),
        resolution=_text(document, SOLUTION),
        language=language_name(_text(document, LANGUAGE)),
    )
    for name, text in (
        ("message", content.error_message),
        ("solution", content.resolution),
        ("language", content.language),
    ):
        size = len(text.encode())
        if size > MAX_BYTES[name]:
            raise EvalDataError(
                f"{document.where}: document {document.id!r} would have a {name} of {size:,} "
                f"bytes, but an error solution's is at most {MAX_BYTES[name]:,}; shorten it, or "
                "remove the document and its ratings"
            )
    return content


def check_fits(dataset: Dataset) -> None:
    """Raise EvalDataError if a document or a filter exceeds a limit of the contract."""
    if dataset.filter_field not in ("", LANGUAGE):
        raise EvalDataError(
            f"--filter {dataset.filter_field}: {dataset.name} is a set of errors, which are found "
            f"by `{LANGUAGE}` only; omit the filter"
        )
    for document in dataset.documents:
        as_error_solution(document)
    for query in dataset.queries:
        if len(query.filter_value.encode()) > MAX_BYTES[LANGUAGE]:
            raise EvalDataError(
                f"{dataset.folder}: the `{LANGUAGE}` of query {query.id!r} is longer than "
                f"{MAX_BYTES[LANGUAGE]} bytes, the limit of a filter; shorten it"
            )


def _text(document: Document, field: str) -> str:
    value = document.fields.get(field)
    return value if isinstance(value, str) else ""
