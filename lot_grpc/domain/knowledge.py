"""Knowledge packs: patterns, memories and error solutions written in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.pattern import PatternContent

PACK_LABEL: Final = "seed"
"""Label of all that was seeded; its value is the name of the pack."""


@dataclass(frozen=True, slots=True)
class KnowledgePack:
    """A named group of knowledge; contents by the id of their entry."""

    name: str
    description: str = ""
    patterns: Mapping[str, PatternContent] = field(default_factory=dict)
    memories: Mapping[str, MemoryContent] = field(default_factory=dict)
    error_solutions: Mapping[str, ErrorSolutionContent] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of its entries."""
        return len(self.patterns) + len(self.memories) + len(self.error_solutions)

    def id_of(self, entry: str) -> str:
        """The id under which an entry is stored, the same in every namespace and process."""
        return f"seed:{self.name}:{entry}"
