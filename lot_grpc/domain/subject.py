"""To whom records belong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.ids import ResourceRef

SUBJECT_LABEL: Final = "subject"
"""The label that names the subject of a record."""

_AFTER: Final = (":", "/")
"""What may follow the subject in an id."""


def named_for(subject: str, id: str) -> bool:
    """Whether an id is the subject, or begins with it and a colon or slash, as ``alice:theme``."""
    return id == subject or id.startswith(tuple(subject + after for after in _AFTER))


def mentions(subject: str) -> Callable[[str], bool]:
    """What tells whether a text contains the subject as a whole word, in any case."""
    found = re.compile(rf"(?<!\w){re.escape(subject)}(?!\w)", re.IGNORECASE)
    return lambda text: found.search(text) is not None


@dataclass(frozen=True, slots=True)
class Erased:
    """What was, or would be, erased.

    ``counts`` are by kind; ``records`` are the first of them; ``texts_removed`` counts outcomes of
    other records that lost their query and note.
    """

    counts: Mapping[str, int]
    records: tuple[ResourceRef, ...]
    texts_removed: int
