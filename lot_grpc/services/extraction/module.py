"""Extraction: patterns and error solutions from episodes, and patterns from code."""

from __future__ import annotations

from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.extraction.code_extraction import CodeExtraction
from lot_grpc.services.extraction.digest_reader import DigestReader
from lot_grpc.services.extraction.episode_extraction import EpisodeExtraction
from lot_grpc.services.extraction.evidence_collector import EvidenceCollector
from lot_grpc.services.extraction.learned_patterns import LearnedPatterns
from lot_grpc.services.extraction.pattern_extraction import PatternExtraction
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.patterns.module import PatternsModule
from lot_grpc.services.runtime import Runtime


class ExtractionModule:
    """Extraction from many episodes, from one that ended, and from code."""

    def __init__(
        self,
        runtime: Runtime,
        patterns: PatternsModule,
        error_solutions: ErrorSolutions,
        log: EventLog,
    ) -> None:
        store, time, reader = runtime.store, runtime.time, DigestReader(log)
        learned = LearnedPatterns(runtime)
        self.patterns = PatternExtraction(EvidenceCollector(store, reader), learned)
        self.episodes = EpisodeExtraction(
            runtime, patterns.writer, patterns.patterns, error_solutions, reader, self.patterns
        )
        self.code = CodeExtraction(patterns.writer, patterns.patterns, time)
        self.maintenance = Maintenance(recoveries={"extractions": self.episodes.finish})
