"""``lot-grpc keys``: the API keys in the key file of a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from typer import Argument, Option

from lot_grpc.auth.files import FileError
from lot_grpc.auth.key_file import change_keys, read_keys, read_last_use
from lot_grpc.cli.audited import audited
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.options import Config, Json, JsonLines, command
from lot_grpc.cli.start import begin
from lot_grpc.cli.tables import Column, print_table, screen
from lot_grpc.cli.times import duration
from lot_grpc.domain.api_key import KEY, ApiKey, Keys, find_key, new_key, replaced, revoked, rotated
from lot_grpc.domain.errors import StartupError

if TYPE_CHECKING:
    from lot_grpc.settings import Settings

Made: TypeAlias = tuple[ApiKey, str]
"""An entry, and the new key; empty if there is none."""

keys = typer.Typer(
    help="Create, list, revoke and rotate API keys. A running server notices within seconds.",
    no_args_is_help=True,
    add_completion=False,
)


def _duration(text: str) -> timedelta:
    try:
        return duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Expires = Annotated[
    timedelta | None,
    Option(
        "--expires",
        metavar="DURATION",
        parser=_duration,
        help="How long the key is valid, such as 12h or 90d; default: until it is revoked.",
    ),
]
Name = Annotated[str, Argument(metavar="NAME", help="Name or id of the key.", show_default=False)]


@keys.command("create")
@command
def create(
    *,
    name: Annotated[
        str,
        Argument(metavar="NAME", help="Name of the caller; must not be that of another valid key."),
    ],
    namespace: Annotated[
        list[str],
        Option(
            "--namespace",
            "-n",
            help="Namespaces it covers: a name, a prefix such as `team-a:*`, or `*`. Repeatable.",
            show_default=False,
        ),
    ],
    role: Annotated[
        str,
        Option(
            "--role",
            "-r",
            help="reader, writer or admin; applies in all these namespaces.",
            show_default=False,
        ),
    ],
    own_namespace: Annotated[
        str,
        Option(
            "--own-namespace",
            help="Namespace of requests that name none; default: the first that is a full name, or "
            "`default` for a key that covers everything.",
            show_default=False,
        ),
    ] = "",
    expires: Expires = None,
    san: Annotated[
        str,
        Option(
            "--san",
            metavar="TEXT",
            help="Create no key; accept a client certificate with this subject alternative name.",
            show_default=False,
        ),
    ] = "",
    calls_per_second: Annotated[
        float, Option("--calls-per-second", min=0, help="Rate limit; 0: the server's limit.")
    ] = 0.0,
    concurrent_calls: Annotated[
        int, Option("--concurrent-calls", min=0, help="Concurrent calls; 0: the server's limit.")
    ] = 0,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. It is shown only once: the key file holds its hash."""
    now = datetime.now(UTC)

    def add(found: Keys) -> tuple[Keys, Made]:
        made, text = new_key(
            found,
            now,
            name=name,
            role=_role(role),
            namespaces=tuple(namespace),
            namespace=own_namespace,
            expire_time=_after(now, expires),
            san=san,
            calls_per_second=calls_per_second,
            concurrent_calls=concurrent_calls,
        )
        return (*found, made), (made, text)

    made, text = _changed(config, "create", name, add)
    _show_new(made, text, now, as_json=as_json)


@keys.command("list")
@command
def list_(*, config: Config = None, as_json: JsonLines = False) -> None:
    """List the keys with what they cover, their state and last use. Never shows a key itself."""
    path = _file(begin(config))
    now = datetime.now(UTC)
    used = read_last_use(path)
    found = _read(path)
    rows = [_fields(one, now, used.get(one.id)) for one in found]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
    elif rows:
        print_table(screen(), _COLUMNS, rows)
    else:
        typer.echo("There are no keys.")


@keys.command("revoke")
@command
def revoke(*, name: Name, config: Config = None, as_json: Json = False) -> None:
    """Revoke a key for good. Its open streams end within a minute."""
    now = datetime.now(UTC)

    def change(found: Keys) -> tuple[Keys, Made]:
        made = revoked(find_key(found, name), now)
        return replaced(found, made), (made, "")

    made, _ = _changed(config, "revoke", name, change)
    if as_json:
        typer.echo(json.dumps(_fields(made, now), indent=2))
    else:
        typer.echo(f"{made.name} ({made.id}) is revoked.")


@keys.command("rotate")
@command
def rotate(
    *,
    name: Name,
    grace: Annotated[
        timedelta | None,
        Option(
            "--grace",
            metavar="DURATION",
            parser=_duration,
            help="How long the old key stays valid, such as 1h; default: it ends at once.",
        ),
    ] = None,
    expires: Expires = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Replace a key by a new one and print it. It is shown only once; what it covers stays."""
    now = datetime.now(UTC)

    def change(found: Keys) -> tuple[Keys, Made]:
        key = find_key(found, name)
        made, text = rotated(key, now, _after(now, grace) or now, _after(now, expires))
        return replaced(found, made), (made, text)

    made, text = _changed(config, "rotate", name, change)
    _show_new(made, text, now, as_json=as_json)


# --- the file -------------------------------------------------------------------------------------


def _file(settings: Settings) -> Path:
    path = settings.auth.keys
    if path is None:
        from lot_grpc.settings_file import SettingsError

        raise SettingsError(
            ["LOT_AUTH_KEYS is not set; set it to the key file, which the first key creates"]
        )
    return path


def _read(path: Path) -> Keys:
    try:
        return read_keys(path)
    except FileError as error:
        raise StartupError(str(error)) from None


def _changed(
    config: Path | None, command: str, name: str, change: Callable[[Keys], tuple[Keys, Made]]
) -> Made:
    """Change the key file, and record that."""
    settings = begin(config)
    path = _file(settings)
    shown = KEY.sub("(a key)", name)  # in place of a name
    with audited(settings.audit, f"keys {command}", ids={"key_name": [shown]}) as record:
        try:
            made, text = change_keys(path, change)
        except FileError as error:
            raise StartupError(f"{error}; nothing was changed") from None
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        record["ids"] = {"key_name": [made.name], "key_id": [made.id]}
        record |= {"role": made.role, "namespaces": [*made.namespaces]}
    return made, text


def _after(now: datetime, expires: timedelta | None) -> datetime | None:
    try:
        return None if expires is None else now + expires
    except OverflowError:
        raise typer.BadParameter("that would be after the year 9999; give a shorter time") from None


def _role(text: str) -> str:
    if text.lower() not in ("reader", "writer", "admin"):
        raise typer.BadParameter(f"{text!r} is not one of reader, writer, admin")
    return text.lower()


# --- what is shown --------------------------------------------------------------------------------


def _show_new(key: ApiKey, text: str, now: datetime, *, as_json: bool) -> None:
    """Show a new entry: the key alone on standard output, so that it can be redirected."""
    if as_json:
        typer.echo(json.dumps(_fields(key, now) | ({"key": text} if text else {}), indent=2))
        return
    until = f"until {_local(key.expire_time)}" if key.expire_time else "until it is revoked"
    covers = f"{key.role} in {', '.join(key.namespaces)}, {until}"
    if text:
        typer.echo(text)
        print_note(f"{key.name} ({key.id}) is {covers}; the key is shown only now, so store it")
    else:
        typer.echo(f"{key.name} ({key.id}), the certificate of {key.san}, is {covers}.")


def _fields(key: ApiKey, now: datetime, used: datetime | None = None) -> dict[str, Any]:
    """What is shown of an entry: nothing secret, and no hash."""
    times = {
        "create_time": key.create_time,
        "expire_time": key.expire_time,
        "revoke_time": key.revoke_time,
        "previous_expire_time": key.previous_expire_time,
        "last_use_time": used,
    }
    return {
        "id": key.id,
        "name": key.name,
        "state": key.state(now),
        "role": key.role,
        "namespaces": list(key.namespaces),
        "own_namespace": key.principal.namespace,
        "san": key.san,
        "calls_per_second": key.calls_per_second,
        "concurrent_calls": key.concurrent_calls,
        **{name: time.isoformat() if time else None for name, time in times.items()},
    }


def _local(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M")


def _shown_time(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: _local(datetime.fromisoformat(row[name])) if row[name] else ""


_COLUMNS = (
    Column[dict[str, Any]]("name", lambda row: row["name"]),
    Column[dict[str, Any]]("id", lambda row: row["id"]),
    Column[dict[str, Any]]("state", lambda row: row["state"]),
    Column[dict[str, Any]]("role", lambda row: row["role"]),
    Column[dict[str, Any]](
        "namespaces", lambda row: ", ".join(row["namespaces"]), folded=True, stretched=True
    ),
    Column[dict[str, Any]]("certificate", lambda row: row["san"], importance=1),
    Column[dict[str, Any]]("created", _shown_time("create_time"), importance=1),
    Column[dict[str, Any]]("expires", _shown_time("expire_time"), importance=3),
    Column[dict[str, Any]]("last used", _shown_time("last_use_time"), importance=2),
)
