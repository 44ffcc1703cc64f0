"""Verifies JSON Web Tokens of an OIDC provider.

Only algorithms with a public key are accepted, and each key only for those it was published for, so
that a token can neither go without a signature nor be signed with what everybody knows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from lot_grpc.auth.key_set import ALGORITHMS, KeySet, SigningKey
from lot_grpc.auth.key_set_source import KeySource
from lot_grpc.domain.access import Principal, Role, is_pattern, own_namespace
from lot_grpc.domain.api_key import grants_of
from lot_grpc.domain.errors import CredentialsInvalidError

LEEWAY_SECONDS: Final = 60.0
"""How far clocks may differ."""

_CACHED: Final = 1024
"""Verified tokens that are remembered, so that not every call of one verifies its signature."""

_TYPES: Final = frozenset(["jwt", "at+jwt"])
"""Types of tokens that are accepted; others of the same issuer mean something else."""

_MAX_SUBJECT: Final = 255
_MAX_NAMESPACES: Final = 256


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say.

    Attributes:
        issuer: The value of ``iss``.
        audience: One of the values of ``aud``.
        subject_claim: The claim that identifies the caller: a text.
        namespaces_claim: The claim with the namespaces: a pattern, or a list of them.
        role_claim: The claim with the role: ``reader``, ``writer`` or ``admin``.
    """

    issuer: str
    audience: str
    subject_claim: str = "sub"
    namespaces_claim: str = "lot_namespaces"
    role_claim: str = "lot_role"


class TokenVerifier:
    """Authenticates tokens."""

    def __init__(
        self, rules: TokenRules, source: KeySource, clock: Callable[[], float] = time.time
    ) -> None:
        self._rules = rules
        self._source = source
        self._clock = clock
        self._issuer = hashlib.sha256(rules.issuer.encode()).hexdigest()[:8]
        self._verified: dict[bytes, Principal] = {}
        self._keys: KeySet | None = None
        """Those that the remembered tokens were verified with."""

    async def verify(self, token: str) -> Principal:
        """Who has a token.

        Raises:
            CredentialsInvalidError: It is not accepted.
            AuthUnavailableError: The issuer's keys are not known.
        """
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if known := self._remembered(digest):
            return known
        try:
            header = jwt.get_unverified_header(token)
        except Exception:  # noqa: BLE001 - whatever a parser makes of hostile input
            raise CredentialsInvalidError("not of the form of a token") from None
        key = await self._source.find(*_key_of(header))
        if key is None:
            raise CredentialsInvalidError(
                "the issuer has no key with the token's kid and alg", "unknown"
            )
        principal = self._principal(self._payload(token, key))
        self._remember(digest, principal)
        return principal

    async def refresh(self) -> None:
        """Get the issuer's keys anew if it is time to. Never raises."""
        await self._source.refresh()

    async def close(self) -> None:
        """Close connections to the issuer."""
        await self._source.close()

    def _payload(self, token: str, key: SigningKey) -> dict[str, Any]:
        try:
            payload: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                issuer=self._rules.issuer,
                audience=self._rules.audience,
                options={
                    "require": ["exp", "iss", "aud"],
                    # Their times are compared below, with our clock.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_sub": False,
                    "verify_jti": False,
                },
            )
        except Exception as error:  # noqa: BLE001 - whatever a parser makes of hostile input
            raise CredentialsInvalidError(*_why(error)) from None
        return payload

    def _principal(self, payload: Mapping[str, Any]) -> Principal:
        rules, now = self._rules, self._clock()
        expire_time = _time(payload, "exp") + LEEWAY_SECONDS
        if expire_time <= now:
            ago = _seconds(now - _time(payload, "exp"))
            raise CredentialsInvalidError(f"expired {ago} ago", "expired")
        for claim in ("nbf", "iat"):
            if claim in payload and (early := _time(payload, claim) - now) > LEEWAY_SECONDS:
                raise CredentialsInvalidError(
                    f"{claim} is {_seconds(early)} ahead; is a clock off?", "claims"
                )
        subject = payload.get(rules.subject_claim)
        if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT:
            raise _unusable(rules.subject_claim, f"a text of 1 to {_MAX_SUBJECT} characters")
        if not subject.isprintable():
            raise _unusable(rules.subject_claim, "printable")
        grants = grants_of(_role(payload, rules.role_claim), _namespaces(payload, rules))
        return Principal(
            id=f"jwt:{self._issuer}:{subject}",
            name=subject,
            grants=grants,
            namespace=own_namespace(grants),
            expire_time=expire_time,
        )

    def _remembered(self, digest: bytes) -> Principal | None:
        if self._keys is not self._source.keys:  # one of them may have been withdrawn
            self._verified.clear()
            self._keys = self._source.keys
        known = self._verified.get(digest)
        if known is None or known.expire_time is None or known.expire_time <= self._clock():
            return None
        return known

    def _remember(self, digest: bytes, principal: Principal) -> None:
        if len(self._verified) >= _CACHED:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = principal


def _key_of(header: Mapping[str, Any]) -> tuple[str, str]:
    """The ``kid`` of an acceptable header, empty if it has none, and its ``alg``."""
    if "crit" in header or "b64" in header:
        raise CredentialsInvalidError("the token's header has crit or b64")
    kind = header.get("typ", "jwt")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise CredentialsInvalidError("the token's typ is not JWT or at+jwt")
    kid = header.get("kid", "")
    if not isinstance(kid, str):
        raise CredentialsInvalidError("the token's kid is not a text")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise CredentialsInvalidError("the token's alg is not accepted")
    return kid, algorithm


def _why(error: Exception) -> tuple[str, str]:
    """Why a token is refused, without quoting it, and the cause."""
    if isinstance(error, jwt.InvalidIssuerError):
        return "another issuer", "claims"
    if isinstance(error, jwt.InvalidAudienceError):
        return "for another audience", "claims"
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"without {error.claim}", "claims"
    if isinstance(error, jwt.InvalidSignatureError):
        return "wrong signature", "wrong"
    return "not of the form of a token", "malformed"


def _time(payload: Mapping[str, Any], claim: str) -> float:
    value = payload[claim]
    if type(value) not in (int, float) or not 0 <= value < 2**53:
        raise _unusable(claim, "a number of seconds")
    return float(value)


def _role(payload: Mapping[str, Any], claim: str) -> str:
    value = payload.get(claim)
    if value not in [one.name.lower() for one in Role]:
        raise _unusable(claim, "reader, writer or admin")
    return str(value)


def _namespaces(payload: Mapping[str, Any], rules: TokenRules) -> list[str]:
    value = payload.get(rules.namespaces_claim)
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not 0 < len(listed) <= _MAX_NAMESPACES:
        raise _unusable(rules.namespaces_claim, f"1 to {_MAX_NAMESPACES} namespaces")
    if not all(isinstance(one, str) and is_pattern(one) for one in listed):
        raise _unusable(rules.namespaces_claim, "names, prefixes such as team-a:*, or *")
    return listed


def _seconds(value: float) -> str:
    return f"{value:.0f} s"


def _unusable(claim: str, what: str) -> CredentialsInvalidError:
    return CredentialsInvalidError(f"claim {claim} is not {what}", "claims")
