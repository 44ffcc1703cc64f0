"""A server that answers as it is told, for the commands that are its clients."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    change_pb2,
    episode_pb2,
    error_solution_pb2,
    memory_service_pb2_grpc,
    pattern_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
    task_context_pb2,
)
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc
from lot_grpc.server.masks import keep, read_tree

Script = list[Any]
"""What a stream sends, in order: messages; a StatusCode ends it, alone or with reason and
sentence; a callable is called."""

NASTY = "\x1b]0;owned\x07\x1b[31mred\u202egnp\x9b2J\nnext [bold]x[/bold] :smile:"
"""A task that would steer a terminal, hide what it is, and be taken for markup."""


def refuse(
    context: grpc.ServicerContext, code: grpc.StatusCode, reason: str, sentence: str
) -> None:
    """End a call as the real server does, with its reason beside the code."""
    status = status_pb2.Status(code=code.value[0], message=sentence)
    status.details.add().Pack(error_details_pb2.RetryInfo())
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="lot.v1"))
    context.abort_with_status(rpc_status.to_status(status))


class Episodes(pb_grpc.EpisodeServiceServicer):
    """Serves what it holds; replays by one script a call."""

    def __init__(self) -> None:
        self.episodes: dict[str, episode_pb2.Episode] = {}
        self.events: list[episode_pb2.EpisodeEvent] = []
        self.failures = pb.AnalyzeFailuresResponse()
        self.scripts: list[Script] = []
        self.requests: list[Any] = []
        self.fails: tuple[grpc.StatusCode, str] | None = None
        self.details: bytes | None = None
        """Sent with a failure, in place of a status with details."""
        self.refuses: tuple[grpc.StatusCode, str, str] | None = None
        self.page = 1000

    def _ask(self, request, context):
        copy = type(request)()
        copy.CopyFrom(request)
        self.requests.append(copy)
        if self.fails:
            if self.details is not None:
                context.set_trailing_metadata((("grpc-status-details-bin", self.details),))
            context.abort(*self.fails)
        if self.refuses:
            refuse(context, *self.refuses)

    def ListEpisodes(self, request, context):
        self._ask(request, context)
        first = int(request.page_token or 0)
        end = first + min(request.page_size, self.page)
        held = list(self.episodes.values())
        token = str(end) if end < len(held) else ""
        episodes = masked(held[first:end], request)
        return pb.ListEpisodesResponse(episodes=episodes, next_page_token=token)

    def GetEpisode(self, request, context):
        self._ask(request, context)
        if request.episode_id not in self.episodes:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no episode {request.episode_id}\x1b[2J")
        return pb.GetEpisodeResponse(episode=self.episodes[request.episode_id])

    def ListEpisodeEvents(self, request, context):
        self._ask(request, context)
        first = int(request.page_token or request.after_sequence)
        end = first + min(request.page_size, self.page)
        token = str(end) if end < len(self.events) else ""
        return pb.ListEpisodeEventsResponse(events=self.events[first:end], next_page_token=token)

    def AnalyzeFailures(self, request, context):
        self._ask(request, context)
        return self.failures

    def ReplayEpisode(self, request, context):
        self._ask(request, context)
        yield from played(self.scripts.pop(0), context)


def copied(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def masked(things: Sequence[Any], request: Any) -> list[Any]:
    """Copies with just what the request reads, as the server gives them."""
    copies = [copied(thing) for thing in things]
    for copy in copies:
        tree = read_tree(request.read_mask, copy.DESCRIPTOR)
        if tree is not None:
            keep(copy, tree)
    return copies


class Patterns(pattern_service_pb2_grpc.PatternServiceServicer):
    """Serves what it holds, in pages as small as ``page``."""

    def __init__(self) -> None:
        self.patterns: list[pattern_pb2.Pattern] = []
        self.outcomes: list[pattern_service_pb2.OutcomeEntry] = []
        self.answer = pattern_service_pb2.RecallPatternsResponse()
        self.stats = pattern_service_pb2.GetPatternStatsResponse()
        self.narrow_stats: dict[str, pattern_service_pb2.GetPatternStatsResponse] = {}
        """By the one language or category that a filter names."""
        self.requests: list[Any] = []
        self.refuses: tuple[grpc.StatusCode, str, str] | None = None
        self.page = 1000

    def _ask(self, request, context):
        copy = type(request)()
        copy.CopyFrom(request)
        self.requests.append(copy)
        if self.refuses:
            refuse(context, *self.refuses)

    def RecallPatterns(self, request, context):
        self._ask(request, context)
        answer = copied(self.answer)
        for hit in answer.hits:
            hit.pattern.CopyFrom(masked([hit.pattern], request)[0])
        return answer

    def ListPatterns(self, request, context):
        self._ask(request, context)
        held, token = self._cut(self.patterns, request)
        patterns = masked(held, request)
        return pattern_service_pb2.ListPatternsResponse(patterns=patterns, next_page_token=token)

    def GetPattern(self, request, context):
        self._ask(request, context)
        for pattern in self.patterns:
            if pattern.pattern_id == request.pattern_id:
                return pattern_service_pb2.GetPatternResponse(pattern=pattern)
        sentence = f"there is no pattern {request.pattern_id}\x1b[2J"
        return refuse(context, grpc.StatusCode.NOT_FOUND, "PATTERN_NOT_FOUND", sentence)

    def ListOutcomes(self, request, context):
        self._ask(request, context)
        held, token = self._cut(self.outcomes, request)
        return pattern_service_pb2.ListOutcomesResponse(outcomes=held, next_page_token=token)

    def GetPatternStats(self, request, context):
        self._ask(request, context)
        narrow = [*request.filter.languages, *request.filter.categories]
        return self.narrow_stats.get(narrow[-1], self.stats) if narrow else self.stats

    def _cut(self, held, request):
        first = int(request.page_token or 0)
        end = first + min(request.page_size, self.page)
        return held[first:end], str(end) if end < len(held) else ""


class Admin(admin_service_pb2_grpc.AdminServiceServicer):
    """Tells one thing about the server."""

    def __init__(self) -> None:
        self.info = admin_service_pb2.GetServerInfoResponse()

    def GetServerInfo(self, request, context):
        return self.info


class Changes(memory_service_pb2_grpc.MemoryServiceServicer):
    """Tells changes by one script a call, and of errors and tasks what it holds."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.requests: list[change_pb2.WatchChangesRequest] = []
        self.found = error_solution_pb2.FindErrorSolutionsResponse()
        self.looked_for: list[error_solution_pb2.FindErrorSolutionsRequest] = []
        self.known = task_context_pb2.GetTaskContextResponse()
        self.tasks: list[task_context_pb2.GetTaskContextRequest] = []
        self.refuses: tuple[grpc.StatusCode, str, str] | None = None

    def GetTaskContext(self, request, context):
        self.tasks.append(request)
        if self.refuses:
            refuse(context, *self.refuses)
        return self.known

    def FindErrorSolutions(self, request, context):
        self.looked_for.append(request)
        if self.refuses:
            refuse(context, *self.refuses)
        return self.found

    def WatchChanges(self, request, context):
        self.requests.append(request)
        yield from played(self.scripts.pop(0), context)


def played(script: Script, context: grpc.ServicerContext) -> Iterator[Any]:
    for step in script:
        if isinstance(step, grpc.StatusCode):
            context.abort(step, "what to do next\x1b[2J")
        elif isinstance(step, tuple):
            refuse(context, *step)
        elif callable(step):
            step()
        else:
            yield step


def held_open(release: threading.Event) -> Callable[[], None]:
    """A step of a script that keeps the stream open until it is let go."""
    return lambda: (release.wait(30), None)[1]


class Fake:
    """All of them, on a port of loopback."""

    def __init__(self) -> None:
        self.episodes = Episodes()  # type: ignore[abstract]  # the rest is not asked
        self.changes = Changes()  # type: ignore[abstract]
        self.patterns = Patterns()  # type: ignore[abstract]
        self.admin = Admin()  # type: ignore[abstract]
        self.release = threading.Event()
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        pb_grpc.add_EpisodeServiceServicer_to_server(self.episodes, self._server)
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(self.changes, self._server)
        pattern_service_pb2_grpc.add_PatternServiceServicer_to_server(self.patterns, self._server)
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(self.admin, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        self.release.set()
        self._server.stop(None).wait()


@contextmanager
def served(add: Callable[[Any, grpc.Server], None], servicer: Any) -> Iterator[str]:
    """The address of a server that has only this service."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()
