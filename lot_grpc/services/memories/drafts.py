"""A memory to create or edit, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.memory import Details, Memory, MemoryContent
from lot_grpc.domain.origin import NO_EDITOR, Editor
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.lexical.conflicts import Contradiction
from lot_grpc.services.expiry import check_expiry, with_ttl


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to create. ``ttl`` in microseconds, instead of ``content.expire_time``.

    ``unique``: what is there with the same content is given back instead.
    """

    content: MemoryContent
    memory_id: str = ""
    request_id: str = ""
    ttl: int | None = None
    unique: bool = False

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)

    def check(self, now: int) -> None:
        """Raise RequestInvalidError if it cannot be created as requested."""
        check_expiry(ResourceKind.MEMORY, self.content.expire_time, now)
        if self.unique and self.memory_id:
            raise invalid(
                "dedupe",
                "dedupe.memory_id",
                "dedupe EXACT identifies a memory by its content, memory_id by its ID; omit one of "
                "them",
            )


@dataclass(frozen=True, slots=True)
class Conflict:
    """A stored memory that a saved one contradicts, and how."""

    memory_id: str
    contradiction: Contradiction


@dataclass(frozen=True, slots=True)
class Created:
    """A created memory. ``truncated``: the model did not read all of its text.

    ``unchanged_fields``: fields of the stored memory that a repeat gave otherwise, and that stay.
    ``conflicts``: stored memories that it contradicts.
    """

    memory: Memory
    created: bool
    truncated: bool = False
    unchanged_fields: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """New values of the named fields of a content; ``ttl`` (microseconds) instead of an expiry.

    ``leaves``: of details of a kind, just these fields. ``editor`` is who edits.
    """

    content: MemoryContent
    fields: frozenset[str]
    ttl: int | None = None
    leaves: Mapping[type[Details], frozenset[str]] = field(default_factory=dict)
    editor: Editor = NO_EDITOR

    def apply(self, old: MemoryContent, now: int) -> MemoryContent:
        """The content after the edit."""
        new = replace(old, **{name: getattr(self.content, name) for name in self.fields})
        for kind, names in self.leaves.items():
            new = self._with_leaves(new, kind, names)
        return with_ttl(new, self.ttl, now)

    def _with_leaves(
        self, content: MemoryContent, kind: type[Details], names: frozenset[str]
    ) -> MemoryContent:
        given, base = self.content.details, content.details
        if not isinstance(base, kind):
            if not isinstance(given, kind):
                return content  # there is nothing to clear
            base = kind()
        source = given if isinstance(given, kind) else kind()
        changes = {name: getattr(source, name) for name in names}
        return replace(content, details=replace(base, **changes))


@dataclass(frozen=True, slots=True)
class Updated:
    """An edited memory. ``truncated``: the model did not read all of its text.

    ``reindexed``: its text is new and long, and is indexed in the background. ``reworded``: its
    text is new. ``conflicts``: stored memories that a new text contradicts.
    """

    memory: Memory
    truncated: bool = False
    reindexed: bool = False
    reworded: bool = False
    conflicts: tuple[Conflict, ...] = ()
