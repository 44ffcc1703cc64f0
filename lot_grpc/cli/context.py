"""``lot-grpc context``: what is known about a task, as text for a prompt."""

from __future__ import annotations

import typer
from typer import Argument, Option

from lot_grpc.cli.calls import Server, print_notices
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.options import Json, Namespace, Repeatable, limit_option, min_match_option
from lot_grpc.cli.tables import print_page
from lot_grpc.cli.words import json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub


def context(
    *,
    task: str = Argument("", metavar="TASK", help="The task, in words."),
    task_id: str = Option(
        "",
        "--task-id",
        metavar="ID",
        help="Instead of TASK: use the task of the latest episode with this id.",
    ),
    category: str = Option("", "--category", help="Category of the task."),
    task_type: str = Option("", "--task-type", help="Type of the task."),
    language: str = Option("", "--language", help="Omit results for other languages."),
    preferences: Repeatable = Option(
        None,
        "--preferences",
        metavar="CATEGORY",
        help="Only preferences in this category. Repeatable.",
    ),
    limit: int = limit_option("3 of each kind", 100),
    max_tokens: int = Option(
        0, "--max-tokens", min=0, metavar="N", help="Limit on the text's length; 0: none."
    ),
    min_similarity: float | None = Option(
        None,
        "--min-similarity",
        min=0,
        max=1,
        metavar="X",
        help="Minimum similarity; 0: no minimum. Default: omit what is unlikely to help.",
    ),
    min_match: float | None = min_match_option("results"),
    namespace: Namespace = "",
    server: Server,
    as_json: Json = False,
) -> None:
    """Print what worked, what failed and what to do for a task, as Markdown for a prompt.

    lot-grpc context "add pagination to a REST endpoint" --max-tokens 1500

    lot-grpc context --task-id t-17 --json
    """
    if bool(task.strip()) == bool(task_id):
        raise typer.BadParameter("give either TASK or --task-id")
    request = pb.GetTaskContextRequest(
        namespace=namespace,
        task=task,
        task_id=task_id,
        category=category,
        task_type=task_type,
        language=language,
        preference_categories=preferences,
        limit=limit,
        max_tokens=max_tokens,
        min_similarity=min_similarity,
        min_match=min_match,
    )
    with server.stub(MemoryServiceStub) as stub:
        answer = stub.GetTaskContext(request, timeout=server.timeout)
    if as_json:
        typer.echo(json_line(answer))
    else:
        _print(answer, bounded=max_tokens > 0)


def _print(answer: pb.GetTaskContextResponse, *, bounded: bool) -> None:
    """Print the text on stdout, and all notes on stderr."""
    text = answer.prompt_text
    if text:
        print_page(text)
    elif answer.truncated:
        print_note("nothing fits into so few tokens; raise --max-tokens")
    else:
        print_note("nothing is known about a task like this")
    if text and answer.truncated:
        more = "raise --max-tokens for more; " if bounded else ""
        tokens = counted(answer.prompt_token_count, "token")
        print_note(f"parts were shortened or omitted ({tokens}); {more}--json shows everything")
    print_notices(answer.notices)
