"""Lists from a server, page by page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import typer
from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.cli.failures import print_note
from lot_grpc.cli.tables import Column, print_table, screen
from lot_grpc.cli.words import json_line

_PAGE = 1000
"""The server's maximum page size."""


def listed(
    method: Callable[..., Any], request: Any, field: str, timeout: float, limit: int = sys.maxsize
) -> Iterator[Any]:
    """The items of a list, page by page; then ``request.page_token`` is set if there are more."""
    while limit > 0:
        request.page_size = min(limit, _PAGE)
        page = method(request, timeout=timeout)
        yield from getattr(page, field)
        limit -= len(getattr(page, field))
        request.page_token = page.next_page_token
        if not request.page_token:
            return


def print_list(
    method: Callable[..., Any],
    request: Any,
    field: str,
    columns: Sequence[Column[Any]],
    *,
    timeout: float,
    limit: int = sys.maxsize,
    read: Collection[str] = (),
    more: str = "--limit N shows N",
    as_json: bool,
) -> None:
    """Print JSON page by page, so that a program gets the first items at once; else one table.

    Args:
        method: The list RPC.
        request: Its request.
        field: The field of the items in the response, also used as their name.
        columns: The columns of the table.
        timeout: Of each call, in seconds.
        limit: The maximum number of items to show.
        read: The fields that the columns show; empty: all.
        more: How to see more.
        as_json: Print one object per line.
    """
    if as_json:
        for one in listed(method, request, field, timeout, limit):
            typer.echo(json_line(one))
        return
    if read:
        request.read_mask.CopyFrom(FieldMask(paths=read))
    found = list(listed(method, request, field, timeout, limit))
    if found:
        print_table(screen(), columns, found)
    else:
        narrowed = read and request.filter.ByteSize()
        typer.echo(f"No {field} match." if narrowed else f"There are no {field}.")
    if request.page_token:
        print_note(f"there are more than these {len(found):,}: {more}")
