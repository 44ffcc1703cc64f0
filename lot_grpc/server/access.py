"""Layers that find out who calls, and refuse what it may not do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lot_grpc.domain.access import EVERYTHING, Credentials, Principal, Role
from lot_grpc.domain.errors import (
    NamespaceDeniedError,
    NamespaceRequiredError,
    RoleRequiredError,
)
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.pb.lot.v1 import access_pb2
from lot_grpc.server.access_rule import Rule
from lot_grpc.server.call import Call, Context, Handler, Method
from lot_grpc.server.surroundings import Surroundings
from lot_grpc.work import current_work

_AUTHORIZATION = "authorization"
_ALTERNATIVE_NAME = "x509_subject_alternative_name"


def authentication(method: Method, handler: Handler, around: Surroundings) -> Handler:
    """Finds out who calls, before anything is spent on the call."""
    authenticator = around.guards.authenticator
    if authenticator is None:
        return handler

    async def authenticated(call: Call) -> Any:
        call.principal = await authenticator.authenticate(credentials_of(call.context))
        call.begun.principal = call.principal
        return await handler(call)

    return authenticated


def credentials_of(context: Context) -> Credentials:
    """What the caller sent to say who it is."""
    values = [value for key, value in context.invocation_metadata() or () if key == _AUTHORIZATION]
    texts = [value if isinstance(value, str) else "" for value in values]
    names = context.auth_context().get(_ALTERNATIVE_NAME, ())
    return Credentials(tuple(texts), tuple(name.decode("utf-8", "replace") for name in names))


def authorization(method: Method, handler: Handler, around: Surroundings) -> Handler:
    """Gives a request without a namespace the caller's own, and refuses what it may not do.

    It is decided by the grants alone: nothing shows whether a namespace exists.
    """
    if around.guards.authenticator is None or method.rule is None:
        return handler
    authorize = authorizer(method, method.rule)

    def admit(call: Call, request: Any) -> None:
        authorize(call.principal, request)
        call.namespace = request.namespace

    async def authorized(call: Call) -> Any:
        if method.client_streaming:
            # The first message opens the stream for all.
            call.request.on_first(partial(admit, call))
        else:
            admit(call, call.request)
        return await handler(call)

    return authorized


def authorizer(method: Method, rule: Rule) -> Callable[[Principal, Any], None]:
    """The check of a request of one method; it sets the namespace."""

    def authorize(principal: Principal, request: Any) -> None:
        if rule.scope == access_pb2.ACCESS_SCOPE_SERVER or (
            rule.server_if and getattr(request, rule.server_if)
        ):
            _require(method, rule, principal.server_role, EVERYTHING)
        if not request.namespace:
            request.namespace = principal.namespace
        if rule.scope == access_pb2.ACCESS_SCOPE_ANY:
            _require(method, rule, principal.highest_role, EVERYTHING)
            return
        if not request.namespace:
            raise NamespaceRequiredError
        role = principal.role_in(request.namespace)
        if role is None:
            raise NamespaceDeniedError(request.namespace)
        _require(method, rule, role, request.namespace)

    return authorize


def _require(method: Method, rule: Rule, role: Role | None, where: str) -> None:
    if role is None or role < rule.role:
        raise RoleRequiredError(method.name, rule.role.name.lower(), where)


def quota_change(method: str, old: NamespacePolicy, new: NamespacePolicy) -> None:
    """Refuse a change of quotas by who is no admin of all namespaces: it would lift its own limit.

    Raises RoleRequiredError.
    """
    work = current_work()
    allowed = work is not None and work.principal.server_role == Role.ADMIN
    if old.quota != new.quota and not allowed:
        raise RoleRequiredError(f"{method} to change a quota", Role.ADMIN.name.lower(), EVERYTHING)
