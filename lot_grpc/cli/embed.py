"""``lot-grpc embed``: how similar the model of a running server finds a query and texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.screen import screen
from lot_grpc.cli.tables import Column, print_fields, print_table
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc


def run(
    query: str,
    texts: Sequence[str],
    address: str,
    timeout: float,
    config: Path | None,
    *,
    code: bool,
    as_json: bool,
) -> bool:
    """Print the similarities; return whether the server answered.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    use = pb.EMBEDDING_USE_CODE if code else pb.EMBEDDING_USE_DOCUMENT
    items = [pb.EmbedItem(text=query, use=pb.EMBEDDING_USE_QUERY)]
    items += [pb.EmbedItem(text=text, use=use) for text in texts]
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            request = pb.EmbedRequest(items=items, omit_vectors=not as_json)
            answer = pb_grpc.AdminServiceStub(channel).Embed(request, timeout=timeout)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        _show(answer, texts)
    return True


def _show(answer: pb.EmbedResponse, texts: Sequence[str]) -> None:
    console = screen()
    cosines = answer.embeddings[0].similarities[1:]
    rows = list(zip(texts, cosines, answer.embeddings[1:], strict=True))
    if rows:
        print_table(console, _COLUMNS, rows, "text")
    prefix = f", query prefix {answer.query_prefix!r}" if answer.query_prefix else ""
    model = f"{answer.model}, {answer.dimensions:,} dimensions{prefix}"
    print_fields(console, [("model", model)])


_Row: TypeAlias = tuple[str, float, pb.TextEmbedding]


def _tokens(row: _Row) -> str:
    return f"{row[2].token_count:,}" if row[2].HasField("token_count") else ""


# The text comes last: letters that run from right to left would move what stands behind them.
_COLUMNS = (
    Column[_Row]("similarity", lambda row: f"{row[1]:.3f}", numeric=True),
    Column[_Row]("read", lambda row: "in part" if row[2].truncated else "whole", 1),
    Column[_Row]("tokens", _tokens, numeric=True),
    Column[_Row]("text", lambda row: one_line(row[0])),
)
