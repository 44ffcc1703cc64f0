"""Which patterns are meant, as given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.cli.words import PATTERN_KINDS
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb


@dataclass(frozen=True)
class Narrowing:
    """What a pattern must be. Empty or 0: anything."""

    languages: Sequence[str] = ()
    kinds: Sequence[str] = ()
    categories: Sequence[str] = ()
    task_types: Sequence[str] = ()
    min_success_rate: float = 0.0
    min_usage: int = 0

    @property
    def narrows(self) -> bool:
        """Whether anything was said."""
        return self != Narrowing()

    def filter(self) -> pb.PatternFilter:
        """The filter of the contract.

        Raises:
            BadParameter: A kind is none.
        """
        made = pb.PatternFilter(
            languages=self.languages,
            categories=self.categories,
            task_types=self.task_types,
            min_usage_count=self.min_usage,
        )
        made.kinds.extend(PATTERN_KINDS.numbers("--kind", self.kinds))
        if self.min_success_rate:
            made.min_success_rate = self.min_success_rate
        return made
