"""Reads a set from a folder in BEIR's layout.

``corpus.jsonl`` and ``queries.jsonl`` have one JSON object per line with ``id`` (or ``_id``) and
``text``; ``qrels.tsv`` (or ``qrels/test.tsv``) has query id, document id and score, separated by
tabs, with or without a header. Documents that do not count for a query are listed in its
``exclude`` or in ``exclusions.tsv`` (query id, document id). Any of the files may be gzipped.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.errors import EvalDataError, wrong
from lot_grpc.evaluation.lines import (
    find_file,
    id_of,
    missing,
    read_lines,
    read_objects,
    text_of,
)

CORPUS = ("corpus.jsonl",)
QUERIES = ("queries.jsonl",)
QRELS = ("qrels.tsv", "qrels/test.tsv")
EXCLUSIONS = ("exclusions.tsv",)
MAX_QUERY_BYTES = 65_536
"""The limit of ``RecallPatternsRequest.query``."""


def load_dataset(folder: Path, filter_field: str = "", name: str = "") -> Dataset:
    """Read a set and check that its parts fit together.

    Args:
        folder: Its folder.
        filter_field: The field in which query and document must agree; empty: none.
        name: Its name in reports; empty: the folder's name.

    Raises:
        EvalDataError: It does not exist, or is not a set.
    """
    if not folder.is_dir():
        raise EvalDataError(
            f"{folder} is not a folder; --data takes a folder that contains corpus.jsonl"
        )
    corpus_file = _file(folder, CORPUS, "the documents")
    queries_file = _file(folder, QUERIES, "the queries")
    qrels_file = _file(folder, QRELS, "the documents that answer each query")
    documents = _documents(corpus_file, filter_field)
    queries = _queries(queries_file, filter_field, documents)
    judged = _judgements(qrels_file, documents, queries)
    excluded = _exclusions(find_file(folder, EXCLUSIONS), documents, queries)
    complete = tuple(
        _complete(query, judged[query.id], excluded[query.id], qrels_file)
        for query in queries.values()
    )
    if not any(query.answerable for query in complete):
        raise wrong(qrels_file, 0, "no query has a relevant document, so nothing can be measured")
    name = name or folder.resolve().name
    return Dataset(name, folder, tuple(documents.values()), complete, filter_field)


def _file(folder: Path, names: tuple[str, ...], what: str) -> Path:
    path = find_file(folder, names)
    if path is None:
        raise missing(folder, names, what)
    return path


# --- documents and queries --------------------------------------------------------------------


def _documents(path: Path, filter_field: str) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for number, record in read_objects(path):
        own = id_of(path, number, record)
        if own in found:
            raise wrong(path, number, f"the id {own!r} occurs twice; ids must differ")
        _filter_value(path, number, record, filter_field)
        found[own] = Document(
            own,
            text_of(path, number, record.get("text"), "text"),
            text_of(path, number, record.get("title") or "", "title"),
            {key: value for key, value in record.items() if key not in _OWN},
            f"{path}, line {number}",
        )
    if not found:
        raise wrong(path, 0, "has no documents")
    return found


_OWN = frozenset({"id", "_id", "text", "title"})


def _queries(path: Path, filter_field: str, documents: Container[str]) -> dict[str, EvalQuery]:
    found: dict[str, EvalQuery] = {}
    for number, record in read_objects(path):
        own = id_of(path, number, record)
        if own in found:
            raise wrong(path, number, f"the id {own!r} occurs twice; ids must differ")
        text = text_of(path, number, record.get("text"), "text")
        if not text.strip():
            raise wrong(path, number, "`text` is empty; remove the query, or give it a text")
        if len(text.encode()) > MAX_QUERY_BYTES:
            raise wrong(
                path,
                number,
                f"`text` is longer than {MAX_QUERY_BYTES:,} bytes, which a "
                "recall refuses; shorten it",
            )
        found[own] = EvalQuery(
            own,
            text,
            exclude=_excluded_here(path, number, record.get("exclude"), documents),
            filter_value=_filter_value(path, number, record, filter_field),
            groups=_groups(record),
        )
    if not found:
        raise wrong(path, 0, "has no queries")
    return found


def _filter_value(path: Path, number: int, record: Mapping[str, Any], name: str) -> str:
    if not name:
        return ""
    value = record.get(name)
    if value is None or value == "":
        raise wrong(
            path,
            number,
            f"has no field `{name}`, which --filter names; every document and every query needs "
            "it; add it, or omit --filter",
        )
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong(path, number, f"`{name}` must be a string or a whole number to filter by")
    return text_of(path, number, str(value), name)


def _groups(record: Mapping[str, Any]) -> tuple[str, ...]:
    kind, source = record.get("kind"), record.get("source")
    if not isinstance(kind, str) or not kind:
        return ()
    return (kind, f"{kind}/{source}") if isinstance(source, str) and source else (kind,)


def _excluded_here(
    path: Path, number: int, value: Any, documents: Container[str]
) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise wrong(path, number, "`exclude` must be a list of document ids")
    ids = [str(one) if isinstance(one, int) else one for one in value]
    for one in ids:
        if not isinstance(one, str) or one not in documents:
            raise wrong(path, number, f"`exclude` names {one!r}, which is not the id of a document")
    return frozenset(ids)


# --- judgements -------------------------------------------------------------------------------


def _judgements(
    path: Path, documents: Container[str], queries: Container[str]
) -> defaultdict[str, dict[str, float]]:
    judged: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for index, (number, line) in enumerate(read_lines(path)):
        parts = line.split("\t")
        score = _score(parts[2]) if len(parts) == 3 else None
        if score is None and index == 0 and len(parts) == 3 and parts[0] not in queries:
            continue  # the header
        if score is None:
            raise wrong(
                path, number, "must be query id, document id and a number, separated by tabs"
            )
        query, document = parts[0].strip(), parts[1].strip()
        _check_known(path, number, query, document, documents, queries)
        if judged[query].setdefault(document, score) != score:
            raise wrong(path, number, f"rates {document!r} for {query!r} again with another score")
    return judged


def _score(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if math.isfinite(score) else None


def _exclusions(
    path: Path | None, documents: Container[str], queries: Container[str]
) -> defaultdict[str, set[str]]:
    excluded: defaultdict[str, set[str]] = defaultdict(set)
    for index, (number, line) in enumerate(read_lines(path) if path else ()):
        assert path is not None
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) < 2:
            raise wrong(path, number, "must be query id and document id, separated by a tab")
        if index == 0 and parts[0] not in queries and parts[1] not in documents:
            continue  # the header
        _check_known(path, number, parts[0], parts[1], documents, queries)
        excluded[parts[0]].add(parts[1])
    return excluded


def _check_known(
    path: Path,
    number: int,
    query: str,
    document: str,
    documents: Container[str],
    queries: Container[str],
) -> None:
    if query not in queries:
        raise wrong(path, number, f"names the query {query!r}, which is not in queries.jsonl")
    if document not in documents:
        raise wrong(path, number, f"names the document {document!r}, which is not in corpus.jsonl")


def _complete(
    query: EvalQuery, judged: Mapping[str, float], excluded: set[str], qrels: Path
) -> EvalQuery:
    exclude = query.exclude | excluded
    for document in sorted(exclude):
        if judged.get(document, 0) > 0:
            raise wrong(
                qrels,
                0,
                f"{document!r} is relevant for {query.id!r} and excluded from its answers; "
                "remove one of the two",
            )
    return replace(query, judged=dict(judged), exclude=exclude)
