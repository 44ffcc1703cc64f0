"""Error solutions from the errors of an episode.

The id of an extracted error solution is derived from its content, so that repeated or concurrent
extraction gives the same solutions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent, same_solution_id
from lot_grpc.domain.extraction.digest import Step
from lot_grpc.domain.extraction.error_solutions import ended_by, error_solution_of
from lot_grpc.domain.extraction.errors_met import errors_met
from lot_grpc.kernel.tombstones import Tombstones
from lot_grpc.services.errors.drafts import ErrorSolutionDraft
from lot_grpc.services.errors.error_solutions import ErrorSolutions


class ErrorExtraction:
    """Extracts error solutions from episodes."""

    def __init__(self, error_solutions: ErrorSolutions, tombstones: Tombstones) -> None:
        self._error_solutions = error_solutions
        self._tombstones = tombstones

    async def save(self, episode: Episode, steps: Sequence[Step | None]) -> list[ErrorSolution]:
        """Save the error solutions of an ended episode, in the order of its errors.

        Existing solutions are left unchanged. A deleted one stays deleted.
        """
        contents = await asyncio.to_thread(_contents, episode, steps)
        things = [(ResourceKind.ERROR_SOLUTION, solution_id) for solution_id in contents]
        deleted = await self._tombstones.those_of(episode.namespace, things)
        stored = await self._error_solutions.get_many(episode.namespace, list(contents))
        there = {solution.error_solution_id: solution for solution in stored}
        solutions = []
        for solution_id, content in contents.items():
            if solution_id in there:
                solutions.append(there[solution_id])
            elif (ResourceKind.ERROR_SOLUTION, solution_id) not in deleted:
                draft = ErrorSolutionDraft(content)
                saved = await self._error_solutions.save(episode.namespace, draft)
                solutions.append(saved.error_solution)
        return solutions


def _contents(episode: Episode, steps: Sequence[Step | None]) -> dict[str, ErrorSolutionContent]:
    """By id."""
    succeeded = episode.status is EpisodeStatus.SUCCEEDED
    contents: dict[str, ErrorSolutionContent] = {}
    for met in errors_met(steps, succeeded=succeeded, ended_by=ended_by(episode)):
        content = error_solution_of(episode, met)
        contents.setdefault(same_solution_id(content), content)
    return contents
