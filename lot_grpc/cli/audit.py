"""``lot-grpc audit``: shows and filters the audit log."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from typer import Argument, Option

from lot_grpc.cli.options import Config, JsonLines, limit_option, time_option
from lot_grpc.cli.start import begin
from lot_grpc.cli.tables import Column, print_table, screen

_LISTED = 50


def audit(
    *,
    file: str = Argument("", metavar="FILE", help="The audit log; default: that of LOT_AUDIT."),
    after: Timestamp | None = time_option(
        "--after", "Recorded after this time: ISO 8601, or how long ago, such as 2h or 3d."
    ),
    before: Timestamp | None = time_option("--before", "Recorded before this time."),
    principal: str = Option("", "--principal", help="Only calls of this principal: ID or name."),
    method: str = Option("", "--method", help="Only this RPC or command, such as DeleteMemory."),
    namespace: str = Option("", "--namespace", "-n", help="Only this namespace."),
    record_id: str = Option("", "--id", help="Only the record, or the call, with this ID."),
    outcome: str = Option(
        "",
        "--outcome",
        help="Only this code or reason, such as NAMESPACE_DENIED; `failed`: all but OK.",
    ),
    limit: int = limit_option(str(_LISTED)),
    config: Config = None,
    as_json: JsonLines = False,
) -> None:
    """Show the audit log, newest last, rotated files included.

    lot-grpc audit --after 1d --outcome failed

    lot-grpc audit --id m-17 --json
    """
    path = Path(file) if file else _configured(config)
    narrowed = {"principal": principal, "method": method, "namespace": namespace, "id": record_id}
    times = (_text(after), _text(before))
    found = deque(
        (one for one in _records(path) if _fits(one, narrowed, outcome, *times)),
        maxlen=limit or _LISTED,
    )
    if as_json:
        from lot_grpc.audit_log import json_line

        for one in found:
            typer.echo(json_line(one))
    else:
        print_table(screen(), _COLUMNS, list(found))


def _configured(config: Path | None) -> Path:
    from lot_grpc.audit_log import OFF, STDOUT

    target = begin(config).audit.output
    if target in (OFF, STDOUT):
        raise typer.BadParameter(f"LOT_AUDIT is {target}, so there is no default; give a FILE")
    return Path(target).expanduser()


def _records(path: Path) -> Any:
    from lot_grpc.audit_log import records

    if not path.exists():
        raise typer.BadParameter(f"there is no audit log {path}; set LOT_AUDIT, or give a FILE")
    try:
        yield from records(path)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from None


def _text(time: Timestamp | None) -> str:
    """A time as in the log, where texts sort like times; empty if there is none."""
    return f"{time.ToDatetime().isoformat(timespec='microseconds')}Z" if time else ""


def _fits(
    one: dict[str, Any], narrowed: dict[str, str], outcome: str, after: str, before: str
) -> bool:
    texts = {
        "principal": {one.get("principal"), one.get("name")},
        "method": {one.get("method"), str(one.get("method", "")).partition(".")[2]},
        "namespace": {one.get("namespace")},
        "id": {one.get("call_id"), *(i for ids in one.get("ids", {}).values() for i in ids)},
    }
    if any(value and value not in texts[key] for key, value in narrowed.items()):
        return False
    if (after and one["time"] <= after) or (before and one["time"] >= before):
        return False
    if outcome == "failed":
        return str(one.get("code", "OK")) != "OK"
    return not outcome or outcome.upper() in (one.get("code"), one.get("reason"))


def _when(one: dict[str, Any]) -> str:
    try:
        time = datetime.fromisoformat(one["time"])
        return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(one["time"])


def _outcome(one: dict[str, Any]) -> str:
    if one.get("event") == "lost":
        return f"{one.get('records')} records were lost"
    if one.get("event") == "open":
        return "opened"
    parts = (one.get("code"), one.get("reason"), one.get("why"))
    return " ".join(str(part) for part in parts if part)


def _ids(one: dict[str, Any]) -> str:
    ids = [value for values in one.get("ids", {}).values() for value in values]
    more = one.get("more_ids")
    return ", ".join(ids) + (f" and {more} more" if more else "")


_COLUMNS = (
    Column[dict[str, Any]]("when", _when),
    Column[dict[str, Any]]("who", lambda one: str(one.get("principal", "")), folded=True),
    Column[dict[str, Any]]("from", lambda one: str(one.get("peer", "")), 2),
    Column[dict[str, Any]]("method", lambda one: str(one.get("method", ""))),
    Column[dict[str, Any]]("namespace", lambda one: str(one.get("namespace", "")), 1),
    Column[dict[str, Any]]("outcome", _outcome, folded=True),
    Column[dict[str, Any]]("ids", _ids, stretched=True),
)
