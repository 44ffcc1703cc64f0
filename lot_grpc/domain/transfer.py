"""Export and import of namespaces: requests, positions and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

FORMAT_VERSION = 1
"""Of the records of an export. Raised when an older server could not import them."""


class ImportConflictPolicy(StrEnum):
    """What to do with a record whose id is taken by other content."""

    FAIL = "fail"
    SKIP = "skip"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """What to export. ``resource_kinds`` empty: all. ``namespace`` empty: those of all.

    ``subject``: only what belongs to it; empty: everything.
    """

    namespace: str = ""
    resource_kinds: frozenset[str] = frozenset()
    vectors: bool = False
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ExportPosition:
    """How far an export has come: behind one record.

    ``kind`` names where it lies; within that, records are in the order of sort key and id. What has
    no sort key of its own has that of the thing it is of, and ``inner`` says which of the thing's.
    """

    namespace: str
    kind: str
    sort_key: int
    id: str
    inner: str = ""


@dataclass(frozen=True, slots=True)
class ImportTerms:
    """How to import. ``same_space``: vectors that come along were made as this store makes them."""

    conflict_policy: ImportConflictPolicy = ImportConflictPolicy.FAIL
    dry_run: bool = False
    same_space: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """How many records of an import were stored, were there, were left out; by kind: stored."""

    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    by_resource_kind: Mapping[str, int] | None = None
