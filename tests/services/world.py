"""The services over a store in memory, with a clock that stands still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.action_values import LearningState
from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.decision import DecisionContent
from lot_grpc.domain.episode import EpisodeEnd, EpisodeEvent, EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.learning_event import FeedbackTarget, LearningEventContent, TargetKind
from lot_grpc.domain.match_probability import CALIBRATED_MODEL
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.query import PatternFilter, Ranking
from lot_grpc.ports import EmbeddingContract, Record, Update, VectorStore
from lot_grpc.services.build import Services
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors.drafts import ErrorSolutionDraft
from lot_grpc.services.learning.decisions import DecisionDraft
from lot_grpc.services.learning.feedback_handler import FeedbackTextDraft
from lot_grpc.services.learning.learning_events import LearningEventDraft
from lot_grpc.services.learning.selections import SelectionDraft
from lot_grpc.services.learning.step_recorder import StepDraft, StepsDraft
from lot_grpc.services.memories.drafts import MemoryDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import PatternDraft, Saved
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.recall.recall import Answer
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.registry import Registry
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import PatternLearning, ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.testing.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock

NS = "team"
MINUTE = 60
HOUR = 3600
DAY = 24 * HOUR
STATE = LearningState("code", Complexity.MEDIUM)


class CalibratedDouble(HashingEmbedder):
    """The double under the name of the model that probabilities were calibrated on."""

    @property
    def contract(self) -> EmbeddingContract:
        return replace(super().contract, model=CALIBRATED_MODEL)


class SharedStore(InMemoryStore):
    """A store that other processes may write to as well, as a Qdrant server is."""

    @property
    def exclusive(self) -> bool:
        return False


async def _one_by_one(store: Any, collection: str, updates: Sequence[Update]) -> set[str]:
    """Each update as a call of its own, so that something may happen before each."""
    return {
        one.id
        for one in updates
        if await store.update(collection, one.namespace, one.id, set=one.set, when=one.when)
    }


class Interleaving:
    """A store whose every call lets others go first and afterwards, as a network would."""

    def __init__(self, inner: VectorStore, seed: int = 7) -> None:
        self._inner = inner
        self._random = random.Random(seed)

    @property
    def exclusive(self) -> bool:
        return self._inner.exclusive

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        return await _one_by_one(self, collection, updates)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        async def interleaved(*given: Any, **named: Any) -> Any:
            await self._wait()
            result = await call(*given, **named)
            await self._wait()
            return result

        return interleaved

    async def _wait(self) -> None:
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)


class Interrupted:
    """A store in which something else happens just before a call, once: what the caller read by
    then may no longer hold."""

    def __init__(self, inner: VectorStore) -> None:
        self._inner = inner
        self._before: dict[tuple[str, str], Callable[[], Awaitable[object]]] = {}

    def before(self, name: str, collection: str, happens: Callable[[], Awaitable[object]]) -> None:
        """``happens`` before the next call of this name on a collection."""
        self._before[name, collection] = happens

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        return await _one_by_one(self, collection, updates)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        if name not in {called for called, _ in self._before}:
            return call

        async def interrupted(collection: str, *given: Any, **named: Any) -> Any:
            if happens := self._before.pop((name, collection), None):
                await happens()
            return await call(collection, *given, **named)

        return interrupted


@dataclass
class World:
    """One process: its services, and the parts they stand on."""

    store: Any
    clock: FixedClock
    services: Services
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    learning: PatternLearning | None = None
    registry: Registry = REGISTRY

    def another_process(self) -> World:
        """A second process, or this one after a restart, over the same store."""
        services = _services(self.store, self.clock, self.embedder, self.learning, self.registry)
        return replace(self, services=services)


def _services(
    store: Any,
    clock: FixedClock,
    embedder: HashingEmbedder,
    learning: PatternLearning | None,
    registry: Registry,
) -> Services:
    settings = ServiceSettings(
        learning=learning or PatternLearning(),
        changes=ChangeFeed(interval=0.02),
        look_seconds=0.01,
    )
    runtime = open_runtime(store, registry, embedder, OverlapReranker(), clock, settings)
    return Services(runtime)


async def open_world(
    store: Any = None,
    clock: FixedClock | None = None,
    learning: PatternLearning | None = None,
    embedder: Any = None,
    registry: Registry = REGISTRY,
) -> World:
    """An empty store with all collections, and a process that works on it."""
    clock = clock or FixedClock()
    store = store if store is not None else InMemoryStore(clock)
    embedder = embedder or HashingEmbedder()
    await open_store(store, registry, embedder.contract)
    services = _services(store, clock, embedder, learning, registry)
    await services.runtime.stack.sequencer.open()
    return World(store, clock, services, embedder, learning, registry)


# --- what is asked of it ----------------------------------------------------------------------


def draft(task: str = "Log in to the site", **named: Any) -> PatternDraft:
    """A pattern to save; what the draft does not know goes into its content."""
    own = {"pattern_id", "initial_success_rate", "request_id", "dedupe", "ttl"}
    return PatternDraft(
        PatternContent(task, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


async def save(world: World, task: str = "Log in to the site", **named: Any) -> Saved:
    return await world.services.patterns.writer.save(NS, draft(task, **named))


def of_pattern(pattern_id: str) -> ResourceRef:
    return ResourceRef(ResourceKind.PATTERN, pattern_id)


async def outcome(
    world: World, *pattern_ids: str, outcome: Outcome = Outcome.SUCCESS, **named: Any
) -> list[Pattern]:
    draft = OutcomeDraft(pattern_ids, outcome, **named)
    return (await world.services.outcomes.recorder.record(NS, draft)).patterns


async def feedback(world: World, pattern_id: str, **named: Any) -> Pattern:
    return await world.services.patterns.feedback.give(NS, FeedbackDraft(pattern_id, **named))


async def recall(
    world: World,
    query: str,
    *,
    limit: int = 5,
    narrowed: PatternFilter | None = None,
    min_similarity: float = 0.0,
    ranking: Ranking = Ranking.BALANCED,
    explain: bool = False,
) -> Answer[Pattern]:
    asked = RecallOptions(query, limit, min_similarity, ranking, explain=explain)
    question = pattern_request(asked, narrowed or PatternFilter())
    return await world.services.recall.patterns.find(NS, question)


def start(task: str = "Deploy the site", episode_id: str = "", **named: Any) -> EpisodeDraft:
    request_id = named.pop("request_id", "")
    return EpisodeDraft(EpisodeStart(task, **named), episode_id, request_id)


def whole(count: int = 3, episode_id: str = "", request_id: str = "", **named: Any) -> EpisodeDraft:
    """An episode to record in one call."""
    named.setdefault("end", end())
    return EpisodeDraft(
        EpisodeStart("Deploy the site"),
        episode_id,
        request_id,
        events=tuple(event(text=f"step {n}") for n in range(1, count + 1)),
        **named,
    )


def end(status: EpisodeStatus = EpisodeStatus.SUCCEEDED, **named: Any) -> EpisodeEnd:
    return EpisodeEnd(status, **named)


def event(sequence: int = 0, text: str = "") -> EpisodeEvent:
    return EpisodeEvent(sequence, "step", data=(text or f"event {sequence}").encode())


def events(first: int, last: int) -> list[EpisodeEvent]:
    return [event(number) for number in range(first, last + 1)]


def step(event_type: str, **data: Any) -> EpisodeEvent:
    """An event whose data says something."""
    struct = Struct()
    struct.update(data)
    return EpisodeEvent(0, event_type, data=struct.SerializeToString(deterministic=True))


def call(tool: str, **data: Any) -> EpisodeEvent:
    """A step with a tool."""
    return step("tool_call", tool=tool, **data)


def memory(content: str = "The port is 8080", **named: Any) -> MemoryDraft:
    own = {"memory_id", "request_id", "ttl", "unique"}
    return MemoryDraft(
        MemoryContent(content, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


async def sweep(world: World) -> list[tuple[str, Mapping[str, int]]]:
    """One round of housekeeping; what was told of it, by namespace."""
    told: list[tuple[str, Mapping[str, int]]] = []
    await world.services.housekeeping.sweep(lambda what, ns, counts: told.append((ns, counts)))
    return told


def select(*names: str, state: LearningState | None = None, **named: Any) -> SelectionDraft:
    """A choice among actions."""
    return SelectionDraft(state or STATE, {name: {} for name in names}, **named)


def steps(*given: tuple[str, float], request_id: str = "") -> StepsDraft:
    """A trajectory of (action, reward) that stays in one state until its end."""
    made = [StepDraft(reward, STATE, action, STATE) for action, reward in given]
    made[-1] = replace(made[-1], next_state=None)
    return StepsDraft(tuple(made), request_id=request_id)


def decision(context: str = "Which store?", **named: Any) -> DecisionDraft:
    """A decision to record."""
    own = {"decision_id", "request_id"}
    content = {"chosen_option": "qdrant", **{k: v for k, v in named.items() if k not in own}}
    return DecisionDraft(
        DecisionContent(context, **content), **{k: v for k, v in named.items() if k in own}
    )


def learning_event(event_type: str = "success", **named: Any) -> LearningEventDraft:
    """A learning event to record."""
    own = {"learning_event_id", "request_id"}
    return LearningEventDraft(
        LearningEventContent(event_type, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


def error_solution(message: str = "KeyError: 'a'", **named: Any) -> ErrorSolutionDraft:
    """An error solution to save, resolved by ``use get`` unless said otherwise."""
    own = {"error_solution_id", "initial_success_rate", "request_id", "ttl"}
    named.setdefault("resolution", "use get")
    return ErrorSolutionDraft(
        ErrorSolutionContent(message, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


def judgement(
    kind: TargetKind | None = None, target_id: str = "", **named: Any
) -> FeedbackTextDraft:
    """A judgement."""
    return FeedbackTextDraft(target=FeedbackTarget(kind, target_id) if kind else None, **named)


# --- what lies in the store -------------------------------------------------------------------


async def rows(store: VectorStore, collection: str, namespace: str | None = NS) -> list[Record]:
    """Every record of a collection."""
    return await store.scroll(collection, namespace, [], limit=100_000)


async def payloads(world: World, collection: str) -> list[Mapping[str, Any]]:
    return [record.payload for record in await rows(world.store, collection)]
