"""The composition root: the modules over one runtime."""

from __future__ import annotations

from lot_grpc.services.admin import Admin
from lot_grpc.services.changes.module import ChangesModule
from lot_grpc.services.clearing.module import ClearingModule
from lot_grpc.services.context.receipts import ContextReceipts
from lot_grpc.services.context.task_context import TaskContextBuilder
from lot_grpc.services.distillation.module import DistillationModule
from lot_grpc.services.episodes.module import EpisodesModule
from lot_grpc.services.errors.module import ErrorsModule
from lot_grpc.services.extraction.module import ExtractionModule
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.learning.module import LearningModule
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.memories.module import MemoriesModule
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.outcomes.module import CountingModule, OutcomesModule
from lot_grpc.services.patterns.module import PatternsModule
from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.recall.module import RecallModule
from lot_grpc.services.reindex.reindexer import OpenModel, Reindexer, no_other_model
from lot_grpc.services.retention.module import RetentionModule
from lot_grpc.services.reviews import RecordReviewer
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.seeder import KnowledgeSeeder
from lot_grpc.services.sessions.module import SessionsModule
from lot_grpc.services.transfer.module import TransferModule


class Services:
    """All use cases, by module: first those of single kinds, then those that span all kinds."""

    def __init__(self, runtime: Runtime, open_model: OpenModel = no_other_model) -> None:
        """``open_model`` opens the models to reindex to."""
        self.runtime = runtime
        counting = CountingModule(runtime)
        self.patterns = patterns = PatternsModule(runtime, counting)
        self.episodes = episodes = EpisodesModule(runtime)
        self.memories = memories = MemoriesModule(runtime)
        self.errors = errors = ErrorsModule(runtime)
        self.preferences = preferences = Preferences(runtime)
        self.sessions = sessions = SessionsModule(runtime)
        self.learning = learning = LearningModule(
            runtime,
            patterns,
            episodes.episodes,
            errors.solutions,
            memories.memories,
            preferences,
        )
        self.receipts = learning.receipts

        own = (
            patterns.patterns,
            episodes.episodes,
            memories.memories,
            errors.solutions,
            preferences,
            sessions.sessions,
            learning.decisions,
            learning.learning_events,
            self.receipts,
        )
        self.resources = resources = ResourcesByKind(runtime, own)
        self.outcomes = OutcomesModule(runtime, counting, resources)
        self.changes = changes = ChangesModule(runtime, resources)
        self.retention = retention = RetentionModule(runtime, resources)
        self.clearing = clearing = ClearingModule(runtime, episodes, resources)
        self.transfer = TransferModule(runtime, resources)
        self.reviewer = RecordReviewer(resources, runtime.time)
        self.seeder = KnowledgeSeeder(runtime, resources)
        self.reindexer = Reindexer(runtime, open_model)
        self.admin = Admin(runtime, (memories.indexing.check,))

        watcher = changes.watcher
        self.recall = RecallModule(runtime, episodes.episodes, memories, watcher)
        self.distillation = distillation = DistillationModule(runtime)
        self.extraction = extraction = ExtractionModule(
            runtime, patterns, errors.solutions, episodes.log
        )
        self.task_contexts = TaskContextBuilder(
            runtime,
            self.recall,
            memories.passages,
            errors.finder,
            learning.recommender,
            ContextReceipts(runtime, watcher),
        )

        maintenance = (
            # In the order of their recoveries: first what deletes whole namespaces, then what
            # others count on.
            clearing.maintenance,
            counting.maintenance,
            Maintenance(recoveries={"deletes": resources.finish_deletes}),
            episodes.maintenance,
            memories.maintenance,
            patterns.maintenance,
            learning.maintenance,
            extraction.maintenance,
            retention.maintenance,
            distillation.maintenance,
            changes.maintenance,
            sessions.maintenance,
        )
        self.housekeeping = Housekeeping(runtime, resources, Maintenance.of_all(maintenance))
