"""One good request for each RPC that is carried out, and every place in a request for a bad value.

``prepare`` stores what the requests name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.service import SERVICES, Lot

EXAMPLES: dict[str, dict[str, Any]] = {
    "AdminService.CheckReady": {},
    "AdminService.ClearNamespace": {},
    "AdminService.Embed": {"items": [{"text": "t"}]},
    "AdminService.EraseSubject": {"subject": "s"},
    "AdminService.Export": {},
    "AdminService.Import": {"header": {"format_version": 1}},
    "AdminService.Compact": {},
    "AdminService.GetServerInfo": {},
    "AdminService.GetNamespacePolicy": {},
    "AdminService.ListNamespaces": {},
    "AdminService.UpdateNamespacePolicy": {"policy": {"max_patterns": 9}},
    "EpisodeService.DeleteEpisode": {"episode_id": "e"},
    "AdminService.SeedKnowledge": {},
    "AdminService.ReviewRecords": {"resource_kind": 1, "items": [{"id": "m"}], "state": 2},
    "AdminService.Reindex": {"model": "m"},
    "EpisodeService.AnalyzeFailures": {},
    "EpisodeService.EndEpisode": {"episode_id": "e", "status": 2},
    "EpisodeService.GetEpisode": {"episode_id": "e"},
    "EpisodeService.ListEpisodeEvents": {"episode_id": "e"},
    "EpisodeService.ListEpisodes": {},
    "EpisodeService.RecallEpisodes": {"query": "t"},
    "EpisodeService.RecordEpisode": {"episode": {"task": "t", "status": 2}},
    "EpisodeService.RecordEvent": {"episode_id": "e", "event": {"event_type": "x"}},
    "EpisodeService.RecordEvents": {"episode_id": "e"},
    "EpisodeService.ReplayEpisode": {"episode_id": "e"},
    "EpisodeService.StartEpisode": {"episode": {"task": "t"}},
    "LearningService.GetPerformanceReport": {},
    "LearningService.GetRecommendations": {"task": "t"},
    "LearningService.GetTrends": {},
    "LearningService.ListActionValues": {"state": {"task_type": "t"}},
    "LearningService.DeleteDecision": {"decision_id": "d"},
    "LearningService.DeleteLearningEvent": {"learning_event_id": "l"},
    "LearningService.GetDecision": {"decision_id": "d"},
    "LearningService.GetLearningEvent": {"learning_event_id": "l"},
    "LearningService.GetRetrieval": {"retrieval_id": "r"},
    "LearningService.ListDecisions": {},
    "LearningService.ListLearningEvents": {},
    "LearningService.ListRetrievals": {},
    "LearningService.RecordDecision": {"decision": {"context": "c", "chosen_option": "o"}},
    "LearningService.RecordDecisionOutcome": {
        "decision_id": "d",
        "outcome": outcome_pb2.OUTCOME_SUCCESS,
    },
    "LearningService.RecordLearningEvent": {"learning_event": {"event_type": "x"}},
    "LearningService.RecordSteps": {
        "steps": [{"state": {"task_type": "t"}, "action": "a", "reward": 0.5}]
    },
    "LearningService.SelectAction": {"state": {"task_type": "t"}, "actions": [{"name": "a"}]},
    "LearningService.SubmitFeedback": {"text": "good"},
    "MemoryService.AppendSessionMessage": {"session_id": "c", "message": {"role": "user"}},
    "MemoryService.ClearSession": {"session_id": "c"},
    "MemoryService.BatchCreateMemories": {"items": [{"memory": {"content": "c"}}]},
    "MemoryService.CreateMemory": {"memory": {"content": "c"}},
    "MemoryService.DeleteErrorSolution": {"error_solution_id": "s"},
    "MemoryService.DeleteMemories": {"filter": {"max_importance": 0.1}},
    "MemoryService.DeleteMemory": {"memory_id": "m"},
    "MemoryService.DeletePreference": {"key": "k"},
    "MemoryService.GetErrorSolution": {"error_solution_id": "u"},
    "MemoryService.GetMemory": {"memory_id": "m"},
    "MemoryService.FindErrorSolutions": {"error_message": "e"},
    "MemoryService.GetTaskContext": {"task": "t"},
    "MemoryService.GetPreference": {"key": "k"},
    "MemoryService.GetSession": {"session_id": "c"},
    "MemoryService.GetSessionValue": {"session_id": "c", "key": "k"},
    "MemoryService.ListErrorSolutions": {},
    "MemoryService.RecordErrorSolutionOutcome": {
        "error_solution_id": "u",
        "outcome": outcome_pb2.OUTCOME_SUCCESS,
    },
    "MemoryService.ListPreferences": {},
    "MemoryService.PutPreference": {"key": "k", "value": {"string_value": "v"}},
    "MemoryService.PutSessionValue": {
        "session_id": "c",
        "key": "k",
        "value": {"string_value": "v"},
    },
    "MemoryService.ListMemories": {},
    "MemoryService.SaveErrorSolution": {
        "error_solution": {"error_message": "e", "resolution": "r"}
    },
    "MemoryService.SearchMemories": {"query": "c"},
    "MemoryService.UpdateErrorSolution": {
        "error_solution_id": "u",
        "error_solution": {"context": "x"},
    },
    "MemoryService.UpdateMemory": {"memory_id": "m", "memory": {"title": "x"}},
    "MemoryService.WatchChanges": {},
    "PatternService.BatchSavePatterns": {"items": [{"pattern": {"task": "t"}}]},
    "PatternService.DeletePattern": {"pattern_id": "p"},
    "PatternService.ExtractPatterns": {},
    "PatternService.ExtractPatternsFromCode": {
        "code": "def f(x): return x + 1",
        "language": "python",
    },
    "PatternService.DistillPatterns": {},
    "PatternService.GetPattern": {"pattern_id": "p"},
    "PatternService.GetPatternStats": {},
    "PatternService.CorrectOutcome": {"outcome_id": "o"},
    "PatternService.ListOutcomes": {"pattern_id": "p"},
    "PatternService.RecordPatternFeedback": {"pattern_id": "p", "helpful": True},
    "PatternService.ListFeedbackCandidates": {},
    "PatternService.ListPatterns": {},
    "PatternService.PrunePatterns": {"max_success_rate": 0.1},
    "PatternService.RecallPatterns": {"query": "t"},
    "PatternService.RecordOutcome": {
        "pattern_ids": ["p"],
        "outcome": outcome_pb2.OUTCOME_SUCCESS,
    },
    "PatternService.SavePattern": {"pattern": {"task": "t"}},
    "PatternService.UpdatePattern": {"pattern_id": "p", "pattern": {"title": "x"}},
}
"""Fields by ``Service.Method``; what a later contract carries out has to be added here."""


async def prepare(lot: Lot) -> None:
    """Store what the examples name; an id that only the server gives is put into its example."""
    await lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p")
    used = await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=outcome_pb2.OUTCOME_SUCCESS)
    EXAMPLES["PatternService.CorrectOutcome"]["outcome_id"] = used.outcome_id
    EXAMPLES["AdminService.Reindex"]["model"] = (await lot.admin.GetServerInfo()).model
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    await lot.memories.CreateMemory(memory={"content": "c"}, memory_id="m")
    searched = await lot.memories.SearchMemories(query="c")
    EXAMPLES["LearningService.GetRetrieval"]["retrieval_id"] = searched.retrieval_id
    await lot.memories.PutPreference(key="k", value={"bool_value": True})
    await lot.memories.PutSessionValue(session_id="c", key="k", value={"bool_value": True})
    decision = {"context": "c", "chosen_option": "o"}
    await lot.learning.RecordDecision(decision=decision, decision_id="d")
    event = {"event_type": "before"}
    await lot.learning.RecordLearningEvent(learning_event=event, learning_event_id="l")
    for name, message in (("s", "f"), ("u", "g")):
        await lot.memories.SaveErrorSolution(
            error_solution={"error_message": message, "resolution": "r"}, error_solution_id=name
        )


def method_of(name: str) -> Any:
    """The descriptor of ``Service.Method``."""
    service, _, method = name.partition(".")
    return SERVICES[service].methods_by_name[method]


def path_of(name: str) -> str:
    """The path of ``Service.Method`` on the wire."""
    method = method_of(name)
    return f"/{method.containing_service.full_name}/{method.name}"


def example(name: str, namespace: str) -> Any:
    """The good request of ``Service.Method``; a namespace to confirm is repeated."""
    request = method_of(name).input_type._concrete_class(namespace=namespace, **EXAMPLES[name])
    if "confirm_namespace" in request.DESCRIPTOR.fields_by_name:
        request.confirm_namespace = namespace or "default"
    return request


@dataclass(frozen=True)
class Place:
    """A field of a request: its path as violations name it, and how to set it to a value."""

    path: str
    field: FieldDescriptor
    put: Callable[[Any, Any], None]


def places(descriptor: Descriptor, depth: int = 4) -> Iterator[Place]:
    """Every field below a request, through messages, lists (one item) and maps (one entry)."""
    yield from _places(descriptor, "", lambda message: message, depth)


def _places(
    descriptor: Descriptor, prefix: str, reach: Callable[[Any], Any], depth: int
) -> Iterator[Place]:
    for field in descriptor.fields:
        path = f"{prefix}{field.name}"
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield Place(f'{path}["k"]', field, _map_setter(reach, field.name))
        elif field.is_repeated and field.message_type is None:
            yield Place(f"{path}[0]", field, _list_setter(reach, field.name))
        elif field.message_type is None:
            yield Place(path, field, _setter(reach, field.name))
        elif field.message_type.full_name.startswith("google."):
            yield Place(path, field, _message_setter(reach, field.name))
        elif depth:
            where = f"{path}[0]" if field.is_repeated else path
            below = _item(reach, field.name) if field.is_repeated else _below(reach, field.name)
            yield from _places(field.message_type, f"{where}.", below, depth - 1)


def _setter(reach: Callable[[Any], Any], name: str) -> Callable[[Any, Any], None]:
    return lambda message, value: setattr(reach(message), name, value)


def _message_setter(reach: Callable[[Any], Any], name: str) -> Callable[[Any, Any], None]:
    return lambda message, value: getattr(reach(message), name).CopyFrom(value)


def _list_setter(reach: Callable[[Any], Any], name: str) -> Callable[[Any, Any], None]:
    def put(message: Any, value: Any) -> None:
        getattr(reach(message), name)[:] = [value]

    return put


def _map_setter(reach: Callable[[Any], Any], name: str) -> Callable[[Any, Any], None]:
    def put(message: Any, value: Any) -> None:
        entries = getattr(reach(message), name)
        if isinstance(value, Message):
            entries["k"].CopyFrom(value)
        else:
            entries["k"] = value

    return put


def _below(reach: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda message: getattr(reach(message), name)


def _item(reach: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    def first(message: Any) -> Any:
        items = getattr(reach(message), name)
        return items[0] if items else items.add()

    return first
