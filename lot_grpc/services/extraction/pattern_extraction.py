"""Extracting patterns from ended episodes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lot_grpc.domain.extraction.learning import Learned, LearningTask, learn
from lot_grpc.domain.pattern import Pattern, PatternType
from lot_grpc.regexes import check_regex
from lot_grpc.services.extraction.evidence_collector import EvidenceCollector, Gathered, Members
from lot_grpc.services.extraction.learned_patterns import LearnedPatterns
from lot_grpc.services.time_slice import ThreadTimeSlice

MIN_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class ExtractionDraft:
    """What to extract. ``namespaces`` whose episodes are read; none: the one it is stored in."""

    regex: str = ""
    pattern_type: PatternType = PatternType.SUCCESS
    min_samples: int = MIN_SAMPLES
    namespaces: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Extracted:
    """The patterns, those of the largest groups first, and how many episodes were read."""

    patterns: list[Pattern]
    episode_count: int


class PatternExtraction:
    """Learns from episodes, a group at a time."""

    def __init__(self, evidence_collector: EvidenceCollector, learned: LearnedPatterns) -> None:
        self.evidence_collector = evidence_collector
        self.learned = learned

    async def extract(self, namespace: str, draft: ExtractionDraft) -> Extracted:
        """Learn from all groups that are large enough. Raises RequestInvalidError for the regex.

        Doing it again with the same episodes changes nothing, with more updates the same patterns.
        """
        check_regex(draft.regex, "task_type_pattern")
        gathered = await self.evidence_collector.gather(
            draft.namespaces or (namespace,), draft.regex
        )
        patterns = []
        for group in sorted(gathered.groups, key=lambda g: (-gathered.groups[g].count, g)):
            members = gathered.groups[group]
            if members.count < draft.min_samples:
                continue
            learning_task = LearningTask(
                namespace, draft.pattern_type, draft.regex, group, members.count
            )
            learned = await self._learn(learning_task, members, gathered, draft.min_samples)
            if learned is not None:
                keep = self.learned.preview if draft.dry_run else self.learned.store
                patterns.append(await keep(learned))
        return Extracted(patterns, gathered.count)

    async def refresh(self, learning_task: LearningTask) -> Pattern | None:
        """Update the pattern of one group; None if there is too little to learn from."""
        members = await self.evidence_collector.members(
            learning_task.namespace, learning_task.group
        )
        tasks = await self.evidence_collector.contrast(learning_task.namespace)
        learned = await self._learn(learning_task, members, tasks, MIN_SAMPLES)
        return await self.learned.store(learned) if learned is not None else None

    async def _learn(
        self, learning_task: LearningTask, members: Members, tasks: Gathered, min_samples: int
    ) -> Learned | None:
        """Read a group and learn from it, in a thread that yields to other calls."""
        digests = await self.evidence_collector.read(members)
        others = [] if learning_task.regex else await tasks.others(learning_task.group)
        if not digests:
            return None
        pause = ThreadTimeSlice().pause
        return await asyncio.to_thread(learn, learning_task, digests, others, min_samples, pause)
