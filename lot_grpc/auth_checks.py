"""Checks of authentication for ``lot-grpc check``: whether callers could be told apart."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from lot_grpc.adapters import make_key_source
from lot_grpc.auth.files import FileError
from lot_grpc.auth.key_file import read_keys
from lot_grpc.domain.counting import counted
from lot_grpc.reports import Check
from lot_grpc.settings import Settings

_SOON = timedelta(days=7)


async def auth_checks(settings: Settings) -> list[Check]:
    """The key file and the issuer's keys, as far as they are configured."""
    checks = []
    if settings.auth.keys:
        checks.append(_key_check(settings))
    if settings.oidc.issuer:
        checks.append(await _token_check(settings))
    return checks


def _key_check(settings: Settings) -> Check:
    path = settings.auth.keys
    assert path is not None
    try:
        keys = read_keys(path)
    except FileError as error:
        missing = isinstance(error.__context__, FileNotFoundError)
        hint = "; `lot-grpc keys create` makes it" if missing else ""
        return Check("keys", ok=False, detail=f"{error}{hint}")
    now = datetime.now(UTC)
    states = Counter(one.state(now) for one in keys)
    detail = f"{path}: " + (", ".join(f"{n} {state}" for state, n in states.items()) or "empty")
    if not states["valid"]:
        detail += "; every key would be refused: make one with `lot-grpc keys create`"
        return Check("keys", ok=False, detail=detail)
    soon = [
        one.name
        for one in keys
        if one.state(now) == "valid" and one.expire_time and one.expire_time - now < _SOON
    ]
    if soon:
        detail += f"; within {_SOON.days} days expire: {', '.join(soon)}"
    return Check("keys", ok=True, detail=detail)


async def _token_check(settings: Settings) -> Check:
    place = settings.oidc.jwks
    try:
        source = make_key_source(settings)
        try:
            keys = await source.load()
        finally:
            await source.close()
    except FileError as error:
        detail = f"{error}; until it can be read, no token is accepted"
        return Check("tokens", ok=False, detail=detail)
    detail = f"{counted(len(keys), 'key')} of {settings.oidc.issuer} at {place}"
    if ahead := source.clock_ahead:
        detail += (
            f"; this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
            "that of the issuer, so tokens may be refused: set the clock"
        )
    return Check("tokens", ok=not ahead, detail=detail)
