"""How calls are named by the conventions of OpenTelemetry.

Those for the memory of agents (of the GenAI group) have these values of ``gen_ai.operation.name``.
A namespace is their memory store. Calls that are none of these operations have no such name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lot_grpc.telemetry.instruments import Metric
from lot_grpc.telemetry.metrics import CALL_DURATION

_RPCS: Final[Mapping[str, str]] = {
    "search_memory": """
        PatternService.RecallPatterns EpisodeService.RecallEpisodes MemoryService.SearchMemories
        MemoryService.FindErrorSolutions MemoryService.GetTaskContext""",
    "create_memory": """
        MemoryService.CreateMemory MemoryService.BatchCreateMemories EpisodeService.StartEpisode
        EpisodeService.RecordEpisode""",
    "upsert_memory": """
        PatternService.SavePattern PatternService.BatchSavePatterns MemoryService.SaveErrorSolution
        MemoryService.PutPreference MemoryService.PutSessionValue""",
    "update_memory": """
        PatternService.UpdatePattern MemoryService.UpdateMemory MemoryService.UpdateErrorSolution
        MemoryService.AppendSessionMessage EpisodeService.RecordEvent EpisodeService.RecordEvents
        EpisodeService.EndEpisode""",
    "delete_memory": """
        PatternService.DeletePattern PatternService.PrunePatterns MemoryService.DeleteMemory
        MemoryService.DeleteMemories MemoryService.DeleteErrorSolution
        MemoryService.DeletePreference MemoryService.ClearSession EpisodeService.DeleteEpisode
        LearningService.DeleteDecision LearningService.DeleteLearningEvent""",
    "delete_memory_store": "AdminService.ClearNamespace",
}

MEMORY_OPERATIONS: Final = {
    name: operation for operation, names in _RPCS.items() for name in names.split()
}
"""The operation by RPC, as ``PatternService.SavePattern``."""


def full_method(name: str) -> str:
    """The fully qualified name of an RPC, as ``lot.v1.PatternService/SavePattern``."""
    return "lot.v1." + name.replace(".", "/")


_UNITS: Final = {"_seconds": ("", "s"), "_bytes": ("_size", "By")}
"""By the ending of a name of Prometheus: what it is in OpenTelemetry, and the unit."""


def otel_name(metric: Metric) -> tuple[str, str]:
    """The name and unit of a metric. The time of calls has one in the conventions."""
    if metric is CALL_DURATION:
        return "rpc.server.call.duration", "s"
    name, unit = metric.name, "1"
    for ending, (kept, of_ending) in _UNITS.items():
        if name.endswith(ending):
            name, unit = name.removesuffix(ending) + kept, of_ending
    return name.replace("_", "."), unit
