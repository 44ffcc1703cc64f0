"""Groups of episodes; one pattern is learned from each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.text_form import normal_form

_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_NAMING = re.compile(r"[\d/\\@]")
"""Characters found in numbers, versions, ids, paths and addresses."""


class GroupBy(StrEnum):
    """What the episodes of a group have in common."""

    TASK_TYPE = "task_type"
    CATEGORY = "category"
    REGEX = "regex"
    WORDS = "words"


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """A group. ``value``: the task type, the category, the regex, or a hash of the words."""

    by: GroupBy
    value: str


def group_of(task_type: str, category: str, regex: str, words: Iterable[str]) -> Group:
    """The group of an episode: by its task type or category, else by the request's regex.

    Without any of these by its task's words as terms (``constant_part``): tasks with the same
    wording except for numbers, quoted names, paths and addresses.
    """
    if task_type:
        return Group(GroupBy.TASK_TYPE, normal_form(task_type))
    if category:
        return Group(GroupBy.CATEGORY, normal_form(category))
    if regex:
        return Group(GroupBy.REGEX, normal_form(regex))
    return Group(GroupBy.WORDS, content_hash(sorted(words)))


def constant_part(task: str) -> str:
    """The constant part of a task."""
    words = _QUOTED.sub(" ", task).split()
    return " ".join(word for word in words if not _NAMING.search(word))
