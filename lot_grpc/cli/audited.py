"""The audit records of commands that change something without a server."""

from __future__ import annotations

import os
import pwd
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lot_grpc.domain.errors import LotError, StartupError

if TYPE_CHECKING:
    from lot_grpc.settings import AuditSettings


@contextmanager
def audited(configured: AuditSettings, command: str, **about: object) -> Iterator[dict[str, Any]]:
    """Record a command before it changes anything, and again when it has ended.

    Yields the record, to which the block can add what it learns.

    Raises:
        StartupError: A record cannot be written. If it is the first, nothing was changed.
    """
    user = _user()
    record: dict[str, Any] = {
        "principal": f"local:{user}",
        "name": os.environ.get("SUDO_USER", user) if os.getuid() == 0 else user,
        "method": command,
        "call_id": secrets.token_hex(6),
        **about,
    }
    advice = "nothing was changed. If the server can write it, run this as its user"
    _write(configured, {**record, "event": "open"}, advice)
    start, end = time.perf_counter(), {"code": "FAILED"}
    try:
        yield record
        end = {"code": "OK"}
    except LotError as error:
        end["reason"] = error.reason
        raise
    except typer.BadParameter:
        end["reason"] = "INVALID_ARGUMENT"
        raise
    finally:
        duration = round((time.perf_counter() - start) * 1000, 3)
        ended = f"this is the result of a command that the log only has the beginning of: {end}"
        _write(configured, {**record, "event": "end", **end, "duration_ms": duration}, ended)


def _user() -> str:
    """The name of the user who runs the command, or the number if there is no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _write(configured: AuditSettings, record: Mapping[str, object], state: str) -> None:
    """Append a record. ``state``: what to say of the command if that fails."""
    from lot_grpc.audit_log import OFF, STDOUT, AuditFile, audit_time, json_line

    output = configured.output
    try:
        if output == STDOUT:
            # Standard output has what the command prints.
            sys.stderr.write(json_line({"time": audit_time(), **record}) + "\n")
        elif output != OFF:
            path = Path(output).expanduser()
            # Only the server rotates: its settings say when, and how many files are kept.
            with (
                _as_owner_of(path),
                closing(
                    AuditFile(path, reads=False, max_bytes=sys.maxsize, files=1, reports=_Fails())
                ) as log,
            ):
                log.write(record)
    except StartupError as error:
        raise StartupError(f"{error.message}; {state}") from error
    except OSError as error:
        raise StartupError(f"the audit log cannot be written: {error}; {state}") from error


class _Fails:
    """Ends the command if its record is lost."""

    def lost(self, records: int, why: str) -> None:
        raise StartupError(f"the audit log cannot be written: {why}")

    def recovered(self) -> None:
        pass

    def not_rotated(self, why: str) -> None:
        pass


@contextmanager
def _as_owner_of(path: Path) -> Iterator[None]:
    """As root, act as the first other user who owns a folder, a link or the file on its path.

    That user decides which file it is, and could lead root to one of root's own. And what root
    creates would be root's, and the server could not write it.
    """
    owner = _owner(path) if os.geteuid() == 0 else None
    if owner is None:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups([owner.st_gid])
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _owner(path: Path) -> os.stat_result | None:
    """The first on a path, and on that with all links followed, that is not root's."""
    for way in (path.absolute(), Path(os.path.realpath(path))):
        for one in (*reversed(way.parents), way):
            with suppress(OSError):  # there is none, or the write will fail there, too
                found = one.lstat()
                if found.st_uid != 0:
                    return found
    return None
