"""What a case of the proof is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.services.world import World

Step = Callable[[World, str], Awaitable[Any]]


@dataclass(frozen=True)
class Case:
    """An operation. ``repeatable``: sent again it must come to what one sending comes to.

    ``contents`` are the tasks it saves by content: each must end as one pattern, whatever happens.
    """

    name: str
    begin: Step
    run: Step
    repeatable: bool = True
    contents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


async def nothing(world: World, ns: str) -> None:
    pass
