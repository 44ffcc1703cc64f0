"""``lot-grpc embed``: how similar a query and texts are to the model of a running server."""

from __future__ import annotations

from typing import TypeAlias

import typer
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.options import Json
from lot_grpc.cli.tables import Column, print_fields, print_table, screen
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub


def embed(
    *,
    query: str = Argument(..., metavar="QUERY", help="The query to compare with."),
    text: list[str] | None = Argument(
        None, metavar="TEXT...", help="Texts to compare with the query."
    ),
    code: bool = Option(False, "--code", help="Treat the texts as code."),
    server: Server,
    as_json: Json = False,
) -> None:
    """Show how similar a query and texts are to the model, to see why a recall finds something.

    lot-grpc embed "sign in as administrator" "Log in to the admin panel" "Water the plants"
    """
    texts = text or []
    use = pb.EMBEDDING_USE_CODE if code else pb.EMBEDDING_USE_DOCUMENT
    items = [pb.EmbedItem(text=query, use=pb.EMBEDDING_USE_QUERY)]
    items += [pb.EmbedItem(text=one, use=use) for one in texts]
    with server.stub(AdminServiceStub) as stub:
        request = pb.EmbedRequest(items=items, omit_vectors=not as_json)
        answer = stub.Embed(request, timeout=server.timeout)
    if as_json:
        typer.echo(json_line(answer))
        return
    console = screen()
    similarities = answer.embeddings[0].similarities[1:]
    rows = list(zip(texts, similarities, answer.embeddings[1:], strict=True))
    if rows:
        print_table(console, _COLUMNS, rows)
    prefix = f", query prefix {answer.query_prefix!r}" if answer.query_prefix else ""
    model = f"{answer.model}, {answer.dimensions:,} dimensions{prefix}"
    print_fields(console, [("model", model)])


_Row: TypeAlias = tuple[str, float, pb.TextEmbedding]

# The text comes last: right-to-left letters would move whatever follows them.
_COLUMNS = (
    Column[_Row]("similarity", lambda row: f"{row[1]:.3f}", numeric=True),
    Column[_Row]("read", lambda row: "in part" if row[2].truncated else "whole", 1),
    Column[_Row]("tokens", lambda row: field_text(row[2], "token_count"), numeric=True),
    Column[_Row]("text", lambda row: row[0], stretched=True),
)
