"""The glossary names types, fields and settings that exist, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.contract import names, settings
from tests.docs.pages import DOCS

PAGE = (DOCS / "glossary.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE))
"""The table under each heading."""


def rows(table: str) -> Iterator[tuple[str, str, str]]:
    for line in table.splitlines()[2:]:
        term, meaning, where = (cell.strip() for cell in line.strip("|").split("|"))
        yield term, meaning, where


@pytest.mark.parametrize("section", SECTIONS)
def test_terms_are_in_order_and_each_is_explained(section: str) -> None:
    found = list(rows(SECTIONS[section]))
    terms = [term for term, _, _ in found]
    assert terms == sorted(terms)
    assert all(meaning.endswith(".") for _, meaning, _ in found)


def test_no_term_is_explained_twice() -> None:
    terms = [term for table in SECTIONS.values() for term, _, _ in rows(table)]
    assert len(terms) == len(set(terms))


def test_what_the_glossary_names_exists() -> None:
    named = {
        name
        for table in SECTIONS.values()
        for _, _, where in rows(table)
        for name in re.findall(r"`([^`]+)`", where)
    }
    known = names() | settings()
    assert named <= known, sorted(named - known)
