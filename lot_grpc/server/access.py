"""Layers that authenticate the caller, and refuse calls that it may not make."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from lot_grpc.domain.access import ANONYMOUS, EVERYTHING, Credentials, Principal, Role
from lot_grpc.domain.errors import (
    LotError,
    NamespaceDeniedError,
    NamespaceRequiredError,
    RoleRequiredError,
)
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.pb.lot.v1 import access_pb2
from lot_grpc.server.access_rule import Rule
from lot_grpc.server.call import Call, Context, Handler, Method
from lot_grpc.server.guards import Guards
from lot_grpc.server.server_state import ServerState
from lot_grpc.work import current_caller, work_for

_AUTHORIZATION = "authorization"
_ALTERNATIVE_NAME = "x509_subject_alternative_name"


def authentication(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Authenticates the caller, before anything is spent on the call."""
    authenticator, certificates = state.guards.authenticator, state.guards.certificates
    refusals = state.refusals
    if authenticator is None:
        return handler

    async def authenticated(call: Call) -> Any:
        call.credentials = credentials_of(call.context, certificates=certificates)
        try:
            call.principal = await authenticator.authenticate(call.credentials)
        except LotError:
            await refusals.hold_back(ANONYMOUS)
            raise
        return await handler(call)

    return authenticated


def credentials_of(context: Context, *, certificates: bool) -> Credentials:
    """What the caller sent to say who it is."""
    texts = []
    for key, value in context.invocation_metadata() or ():
        if key == _AUTHORIZATION:
            texts.append(value if isinstance(value, str) else "")
    names = context.auth_context().get(_ALTERNATIVE_NAME, ()) if certificates else ()
    return Credentials(tuple(texts), tuple([name.decode("utf-8", "replace") for name in names]))


def authorization(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Sets the caller's own namespace if there is none, and refuses calls that it may not make.

    Only the grants decide: nothing shows whether a namespace exists.
    """
    rule = method.rule
    if state.guards.authenticator is None or rule is None:
        return handler
    whole = rule.scope == access_pb2.ACCESS_SCOPE_SERVER

    def admit(call: Call, request: Any) -> None:
        principal = call.principal
        if not request.namespace:
            request.namespace = principal.namespace
        namespace = call.namespace = request.namespace
        everywhere = whole or bool(
            rule.server_scope_field and getattr(request, rule.server_scope_field)
        )
        authorize(method.name, rule, namespace, everywhere, principal)
        if method.streaming:
            call.authorize = partial(authorize, method.name, rule, namespace, everywhere)
        for named in (
            getattr(request, rule.read_namespaces_field) if rule.read_namespaces_field else ()
        ):
            if not principal.may_read(named):
                raise NamespaceDeniedError(named)
        work_for(principal, namespace)

    async def authorized(call: Call) -> Any:
        if method.client_streaming:
            # The first message opens the stream for all: no servicer takes a second opening.
            call.request.on_first(partial(admit, call))
        else:
            admit(call, call.request)
        return await handler(call)

    return authorized


def authorize(
    method: str,
    rule: Rule,
    namespace: str,
    everywhere: bool,
    principal: Principal,
) -> None:
    """Refuse a call that a principal may not make. ``everywhere``: it needs a grant on ``*``.

    Raises:
        NamespaceRequiredError, NamespaceDeniedError, RoleRequiredError: it may not.
    """
    if everywhere:
        role, where = principal.server_role, EVERYTHING
    elif namespace:
        role, where = principal.role_in(namespace), namespace
        if role is None:
            raise NamespaceDeniedError(namespace)
    elif rule.scope == access_pb2.ACCESS_SCOPE_ANY:
        role, where = principal.highest_role, ""
    else:
        raise NamespaceRequiredError
    if role is None or role < rule.role:
        raise RoleRequiredError(method, rule.role.name.lower(), where)


async def recheck(streams: Callable[[], Iterable[Call]], guards: Guards) -> None:
    """End open streams whose credentials are no longer accepted, or no longer allow them.

    Runs until cancelled. A stream of requests ends at its next read; if it reads none until the
    next round, or only answers, it is cancelled.
    """
    assert guards.authenticator is not None
    while True:
        await asyncio.sleep(guards.recheck_seconds)
        for call in list(streams()):
            if call.principal is ANONYMOUS:  # health, which needs no credentials
                continue
            await asyncio.sleep(0)  # many streams must not block other calls
            try:
                async with asyncio.timeout(guards.recheck_seconds):
                    found = await guards.authenticator.authenticate(call.credentials)
                if call.authorize is not None:
                    call.authorize(found)
            except Exception as error:  # noqa: BLE001 - fail closed
                call.end(error)


def quota_change(method: str, old: NamespacePolicy, new: NamespacePolicy) -> None:
    """Refuse a change of quotas unless the caller is an admin of all namespaces.

    Otherwise it could lift its own limit. Raises RoleRequiredError.
    """
    allowed = current_caller().principal.server_role == Role.ADMIN
    if old.quota != new.quota and not allowed:
        raise RoleRequiredError(f"{method} to change a quota", Role.ADMIN.name.lower(), EVERYTHING)
