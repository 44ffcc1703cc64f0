"""Turns a document into a pattern, within the limits of the contract. Nothing is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lot_grpc.domain.label_keys import LABEL_KEY, is_label_key
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.pattern import PatternContent, PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.errors import EvalDataError

LANGUAGE = "language"
MAX_BYTES = {"title": 1024, "task": 65_536, "code": 262_144, "language": 64, "label": 256}
"""The limits of ``lot.v1.Pattern``; the services leave such rules to the contract."""


def as_pattern(document: Document, filter_field: str = "", *, code: bool = False) -> PatternContent:
    """The pattern for a document.

    With ``code`` it is a CODE pattern, whose task is the title or else the first line that is not
    blank; otherwise a TASK pattern with the title, unless the text begins with it. The filter field
    becomes the pattern's language if it has that name, else a label.

    Raises:
        EvalDataError: It exceeds a limit of the contract.
    """
    text, title = document.text, document.title.strip()
    if text.lstrip().startswith(title):
        title = ""  # it is in the text; twice would count double
    labels: dict[str, str] = {}
    if filter_field and filter_field != LANGUAGE:
        labels[_checked_key(filter_field)] = str(document.fields[filter_field])
    content = PatternContent(task=text, labels=labels)
    if code:
        content = PatternContent(
            task=title or first_line(text),
            kind=PatternKind.CODE,
            code=text,
            language=_language(document),
            labels=labels,
        )
    else:
        content = PatternContent(
            task=text if text.strip() else title,
            title=title if text.strip() else "",
            language=_language(document) if filter_field == LANGUAGE else "",
            labels=labels,
        )
    _check_sizes(document, content)
    return content


def as_filter(query: EvalQuery, filter_field: str) -> PatternFilter:
    """The filter for documents that agree with the query."""
    if not filter_field:
        return PatternFilter()
    if filter_field == LANGUAGE:
        return PatternFilter(languages=(query.filter_value,))
    return PatternFilter(labels={filter_field: query.filter_value})


def check_fits(dataset: Dataset) -> None:
    """Raise EvalDataError if a document or a filter exceeds a limit of the contract."""
    code = are_code(dataset.documents)
    for document in dataset.documents:
        if not document.blank:
            as_pattern(document, dataset.filter_field, code=code)
    most = MAX_BYTES[LANGUAGE if dataset.filter_field == LANGUAGE else "label"]
    for query in dataset.queries:
        if len(query.filter_value.encode()) > most:
            raise EvalDataError(
                f"{dataset.folder}: the `{dataset.filter_field}` of query {query.id!r} is longer "
                f"than {most} bytes, the limit of a filter; shorten it"
            )


def first_line(text: str) -> str:
    """The first line that is not blank, trimmed."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _language(document: Document) -> str:
    value = document.fields.get(LANGUAGE)
    return language_name(value) if isinstance(value, str) else ""


def _checked_key(name: str) -> str:
    if not is_label_key(name):
        raise EvalDataError(f"--filter {name}: a label's key is {LABEL_KEY}; rename the field")
    return name


def _check_sizes(document: Document, content: PatternContent) -> None:
    texts = [
        ("title", content.title),
        ("task", content.task),
        ("code", content.code),
        ("language", content.language),
        *(("label", value) for value in content.labels.values()),
    ]
    for name, text in texts:
        size = len(text.encode())
        if size > MAX_BYTES[name]:
            raise EvalDataError(
                f"{document.where}: document {document.id!r} would have a {name} of {size:,} "
                f"bytes, but a pattern's is at most {MAX_BYTES[name]:,}; shorten it, or remove "
                "the document and its ratings"
            )


_CODE_LINE = re.compile(
    r"^\s*(def |class |func |fn |pub |public |private |static |import |from \w+ import|#include"
    r"|const |let |var |function |impl |struct |template|package |return\b|@\w+|\}|\{"
    r"|(int|void|bool|string|double|float|std::\S+|vector<\S+) )"
    r"|^\s*[\w.\[\]]+ [-+*/]?= |^\s*(if|for|while|elif|else|try|with)\b.*:\s*$"
    r"|[({=].*;\s*$|[{}]\s*$|\)\s*(:|=>)\s*$"
)
_CODE_SHARE = 0.4


def are_code(documents: Sequence[Document]) -> bool:
    """Whether a set is of code: whether most of its documents are."""
    return 2 * sum(looks_like_code(document.text) for document in documents) > len(documents)


def looks_like_code(text: str) -> bool:
    """Whether most lines of a text look like source code."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _CODE_LINE.search(lines[0]):
        return False
    return sum(bool(_CODE_LINE.search(line)) for line in lines) >= _CODE_SHARE * len(lines)
