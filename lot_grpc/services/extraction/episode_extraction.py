"""Extraction from an episode when it ends, if its caller requested it (``extract_knowledge``).

The request is stored with the end, in one write. Then the error solutions of the episode are saved;
if it succeeded, its TASK pattern too, and the LEARNED pattern of its group is updated; then the
episode is marked as done, with the results. Each step is idempotent, so whoever finds an open
request (a retry, or a sweep after a crash) repeats them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.errors import EtagMismatchError, LotError, PatternNotFoundError
from lot_grpc.domain.extraction.digest import Step
from lot_grpc.domain.extraction.learning import MOST_SOURCES, LearningTask, group_count_of
from lot_grpc.domain.extraction.single import solution_request, task_pattern
from lot_grpc.domain.pattern import Pattern, PatternContent, PatternType
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.ports import Payload, Record
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.extraction.digest_reader import DigestReader
from lot_grpc.services.extraction.error_extraction import ErrorExtraction
from lot_grpc.services.extraction.evidence_collector import own_group
from lot_grpc.services.extraction.pattern_extraction import MIN_SAMPLES, PatternExtraction
from lot_grpc.services.patterns.drafts import PatternDraft
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import PatternEdit, Patterns
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.records.episodes import (
    DONE,
    EXTRACTED_PATTERNS,
    EXTRACTED_SOLUTIONS,
    EXTRACTION,
    REQUESTED,
    episode_from_record,
    episode_point,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.work import follow_up

GROWTH = 1.1
"""How much a group must have grown since it was last learned from: reading all of it at each end
would cost the square of its size."""


@dataclass(frozen=True, slots=True)
class ExtractedPatterns:
    """What was extracted from an episode, in its current state."""

    patterns: list[Pattern]
    error_solutions: list[ErrorSolution]


class EpisodeExtraction:
    """Extracts patterns and error solutions from an ended episode."""

    def __init__(
        self,
        runtime: Runtime,
        pattern_writer: PatternWriter,
        patterns: Patterns,
        error_solutions: ErrorSolutions,
        digest_reader: DigestReader,
        extraction: PatternExtraction,
    ) -> None:
        self._store = runtime.store
        self._pattern_writer = pattern_writer
        self._patterns = patterns
        self._digest_reader = digest_reader
        self._extraction = extraction
        self._tombstones = runtime.tombstones
        self._error_solutions = error_solutions
        self._wishes = Journal(
            runtime.store, EPISODES, Mark(EXTRACTION, REQUESTED, DONE), begun="update_time"
        )
        self._error_extraction = ErrorExtraction(error_solutions, runtime.tombstones)

    async def take(self, namespace: str, episode_id: str) -> ExtractedPatterns:
        """Extract from an ended episode, or return what was extracted before.

        What was deleted since is left out.
        """
        point = episode_point(namespace, episode_id)
        record = (await self._store.get(EPISODES, namespace, [point])).get(point)
        if record is None:
            return ExtractedPatterns([], [])
        if record.payload.get(EXTRACTION) == DONE:
            return await self._extracted(record)
        if EXTRACTION not in record.payload:  # ended before by a call that did not ask for it
            await self._set(record, {EXTRACTION: REQUESTED})
        with follow_up():  # from the episode, which is stored
            extracted = await self._teach(record)
        done = {
            EXTRACTION: DONE,
            EXTRACTED_PATTERNS: [pattern.pattern_id for pattern in extracted.patterns],
            EXTRACTED_SOLUTIONS: [one.error_solution_id for one in extracted.error_solutions],
        }
        await self._set(record, done)
        return extracted

    async def _set(self, record: Record, changed: Payload) -> None:
        """Change an episode, unless another has its id by now."""
        given = (EPISODES, record.namespace, record.id)
        await self._store.update(*given, set=changed, when=as_read(record))

    async def _extracted(self, record: Record) -> ExtractedPatterns:
        """The result of an earlier extraction."""
        namespace, payload = record.namespace, record.payload
        solutions = payload.get(EXTRACTED_SOLUTIONS, ())
        return ExtractedPatterns(
            await self._patterns.get_many(namespace, tuple(payload.get(EXTRACTED_PATTERNS, ()))),
            await self._error_solutions.get_many(namespace, solutions),
        )

    async def finish(self, before: int) -> int:
        """Take the lessons of episodes that ended before a time and whose wish is open.

        One that cannot be taken now, as when the model cannot be reached, is left for later.
        """

        async def take(row: Record) -> None:
            await self.take(row.namespace, row.payload["episode_id"])

        keys = ("episode_id", "update_time")
        return await self._wishes.recover(before, take, payload=keys, leaving=(LotError,))

    async def _teach(self, record: Record) -> ExtractedPatterns:
        episode = episode_from_record(record)
        steps = await self._digest_reader.steps(episode, record, with_args=True)
        solutions = await self._error_extraction.save(episode, steps)
        if episode.status is not EpisodeStatus.SUCCEEDED:
            return ExtractedPatterns([], solutions)
        alone = await self._save_alone(record, episode, steps)
        learned = await self._refresh_group(record)
        patterns = [pattern for pattern in (alone, learned) if pattern is not None]
        return ExtractedPatterns(patterns, solutions)

    async def _save_alone(
        self, record: Record, episode: Episode, steps: Sequence[Step | None]
    ) -> Pattern | None:
        """Its TASK pattern; None if that was deleted meanwhile. The same content counts once."""
        request_id = solution_request(episode, record.payload[SORT_KEY])
        draft = PatternDraft(task_pattern(episode, steps), request_id=request_id)
        try:
            saved = await self._pattern_writer.save(episode.namespace, draft)
            return await self._add_source(saved.pattern, episode.episode_id)
        except PatternNotFoundError:
            return None

    async def _add_source(self, pattern: Pattern, episode_id: str) -> Pattern:
        async def attempt() -> Pattern:
            stored = await self._patterns.get(pattern.namespace, pattern.pattern_id)
            sources = stored.content.source_episode_ids
            if episode_id in sources or len(sources) >= MOST_SOURCES:
                return stored
            content = PatternContent("", source_episode_ids=(*sources, episode_id))
            edit = PatternEdit(content, frozenset({"source_episode_ids"}))
            try:
                given = (stored.namespace, stored.pattern_id, edit, stored.etag)
                return (await self._patterns.update(*given)).pattern
            except EtagMismatchError as error:
                raise ConflictError from error

        return await compare_and_set(ResourceKind.PATTERN, pattern.pattern_id, attempt)

    async def _refresh_group(self, record: Record) -> Pattern | None:
        """The group's LEARNED pattern, if the group is large enough and grew enough.

        A deleted one stays deleted; ``ExtractPatterns`` restores it.
        """
        namespace = record.namespace
        group = own_group(record)
        count = await self._extraction.evidence_collector.count(namespace, group)
        if count < MIN_SAMPLES:
            return None
        learning_task = LearningTask(namespace, PatternType.SUCCESS, "", group, count)
        stored = await self._extraction.learned.find(namespace, learning_task.pattern_id)
        if stored is None and await self._tombstones.find(
            namespace, ResourceKind.PATTERN, learning_task.pattern_id
        ):
            return None
        if stored is not None and count < GROWTH * group_count_of(stored.content):
            return stored
        return await self._extraction.refresh(learning_task)
