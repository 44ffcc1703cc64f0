"""``lot-grpc context``: what is known of a task, as text for a prompt, of a running server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, note_all, target_of, tell_failure
from lot_grpc.cli.failures import note
from lot_grpc.cli.screen import print_page
from lot_grpc.cli.words import json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb


@dataclass(frozen=True)
class Wanted:
    """What was asked for, as in GetTaskContextRequest."""

    namespace: str
    task: str
    task_id: str
    category: str
    task_type: str
    language: str
    preference_categories: Sequence[str]
    limit: int
    max_tokens: int
    min_similarity: float | None


def run(
    wanted: Wanted, address: str, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask and print, and tell whether there was an answer; that nothing is known is one.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    request = pb.GetTaskContextRequest(
        namespace=wanted.namespace,
        task=wanted.task,
        task_id=wanted.task_id,
        category=wanted.category,
        task_type=wanted.task_type,
        language=wanted.language,
        preference_categories=wanted.preference_categories,
        limit=wanted.limit,
        max_tokens=wanted.max_tokens,
        min_similarity=wanted.min_similarity,
    )
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            stub = pb_grpc.MemoryServiceStub(channel)
            answer = stub.GetTaskContext(request, timeout=timeout)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        _show(answer, bounded=wanted.max_tokens > 0)
    return True


def _show(answer: pb.GetTaskContextResponse, *, bounded: bool) -> None:
    """The text on stdout, all else that is to be said on stderr."""
    text = answer.prompt_text
    if text:
        print_page(text)
    elif answer.truncated:
        note("no part fits into so few tokens; a larger --max-tokens has room")
    else:
        note("nothing is known that fits this task")
    if text and answer.truncated:
        more = "a larger --max-tokens has room for more, " if bounded else ""
        note(
            "parts are shortened or left out "
            f"({counted(answer.prompt_token_count, 'token')}); {more}--json has all of it"
        )
    note_all(answer.notices)
