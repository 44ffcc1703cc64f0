"""Tokens: what is accepted, and what somebody may try instead."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lot_grpc.auth.key_set import KeySet, parse_key_set
from lot_grpc.auth.tokens import TokenRules, TokenVerifier
from lot_grpc.domain.access import Grant, Role
from lot_grpc.domain.errors import CredentialsInvalidError
from tests.auth.issuer import (
    AUDIENCE,
    ISSUER,
    coded,
    key_set,
    payload,
    private_key,
    published,
    signed,
    token,
    unsigned,
)
from tests.auth.keys import NOW, Clock

RULES = TokenRules(ISSUER, AUDIENCE)
now = int(NOW.timestamp())


class Keys:
    """Keys that are there, and count how often they are looked up."""

    def __init__(self, *entries: dict[str, Any]) -> None:
        self.keys = parse_key_set("test", key_set(*entries))
        self.looked = 0
        self.clock_ahead = 0.0

    async def find(self, id: str, algorithm: str) -> Any:
        self.looked += 1
        return self.keys.find(id, algorithm)

    async def refresh(self) -> None:
        pass

    async def load(self) -> KeySet:
        return self.keys

    async def close(self) -> None:
        pass


def verifier(*entries: dict[str, Any], rules: TokenRules = RULES) -> TokenVerifier:
    return TokenVerifier(rules, Keys(*entries), Clock())


async def refusal(text: str, verify: TokenVerifier | None = None) -> str:
    """Why a token is refused, for the log."""
    with pytest.raises(CredentialsInvalidError) as caught:
        await (verify or verifier()).verify(text)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert text not in caught.value.why
    return caught.value.why


# --- what is accepted -------------------------------------------------------------------------


async def test_a_token_tells_who_calls_and_what_it_may():
    caller = await verifier().verify(token())
    issuer = hashlib.sha256(ISSUER.encode()).hexdigest()[:8]
    assert (caller.id, caller.name) == (f"jwt:{issuer}:agent-7", "agent-7")
    assert caller.grants == (Grant(Role.WRITER, "team-a:*"), Grant(Role.WRITER, "shared"))
    assert caller.namespace == "shared"
    assert caller.expire_time == now + 3600 + 60


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("RSA", one) for one in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")]
    + [("EC", "ES256"), ("OKP", "EdDSA")],
)
async def test_every_algorithm_with_a_public_key_is_accepted(kind, algorithm):
    assert await verifier(published(kind, "k1")).verify(token(kind, algorithm))


async def test_names_of_claims_can_be_set():
    rules = TokenRules(ISSUER, AUDIENCE, "azp", "https://x.example/ns", "role")
    more: dict[str, Any] = {
        "azp": "client-1",
        "https://x.example/ns": "team-b",
        "role": "admin",
        "sub": None,
    }
    caller = await verifier(rules=rules).verify(token(**more))
    assert caller.name == "client-1"
    assert caller.grants == (Grant(Role.ADMIN, "team-b"),)


@pytest.mark.parametrize(
    "header", [{"typ": "at+jwt"}, {"typ": "application/AT+JWT"}, {"typ": None}]
)
async def test_a_type_may_say_that_it_is_an_access_token(header):
    assert await verifier().verify(token(header=header))


async def test_an_audience_may_be_one_of_several():
    assert await verifier().verify(token(aud=["other", AUDIENCE]))


async def test_without_a_kid_the_only_key_counts():
    assert await verifier(published("RSA", None)).verify(token(kid=None))
    assert await verifier(published("RSA", "k1")).verify(token(kid=None))
    two = verifier(published("RSA", "k1"), published("RSA", "k2", 1))
    assert "no key" in await refusal(token(kid=None), two)


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"exp": now - 60}, "expired 60 s ago"),
        ({"exp": now - 3600}, "expired 3600 s ago"),
        ({"nbf": now + 61}, "nbf is 61 s ahead; is a clock off?"),
        ({"iat": now + 61}, "iat is 61 s ahead; is a clock off?"),
        ({"exp": None}, "without exp"),
        ({"exp": "tomorrow"}, "claim exp is not a number of seconds"),
        ({"exp": str(now + 60)}, "claim exp is not a number of seconds"),
        ({"exp": True}, "claim exp is not a number of seconds"),
        ({"exp": [now + 60]}, "claim exp is not a number of seconds"),
        ({"exp": 10**400}, "claim exp is not a number of seconds"),
        ({"exp": 1e300}, "claim exp is not a number of seconds"),
        ({"exp": float("inf")}, "claim exp is not a number of seconds"),
        ({"exp": float("nan")}, "claim exp is not a number of seconds"),
        ({"exp": -1}, "claim exp is not a number of seconds"),
        ({"nbf": "now"}, "claim nbf is not a number of seconds"),
        ({"iat": {}}, "claim iat is not a number of seconds"),
    ],
)
async def test_a_time_that_is_over_to_come_or_none_is_refused(more, why):
    assert await refusal(token(**more)) == why


@pytest.mark.parametrize("more", [{"exp": now - 59}, {"nbf": now + 60}, {"iat": now + 60.5 - 0.5}])
async def test_clocks_may_differ_by_a_minute(more):
    assert await verifier().verify(token(**more))


async def test_a_verified_token_is_remembered_until_it_expires():
    keys, clock = Keys(), Clock()
    verify, text = TokenVerifier(RULES, keys, clock), token()
    first = await verify.verify(text)
    assert await verify.verify(text) is first
    assert keys.looked == 1
    clock.now = now + 3600 + 59
    assert await verify.verify(text) is first
    clock.now = now + 3600 + 60
    assert "expired" in await refusal(text, verify)


async def test_a_remembered_token_is_forgotten_with_its_key():
    keys = Keys(published("RSA", "k1"), published("RSA", "k2", 1))
    verify = TokenVerifier(RULES, keys, Clock())
    await verify.verify(token())
    keys.keys = parse_key_set("test", key_set(published("RSA", "k2", 1)))
    assert "no key" in await refusal(token(), verify)


async def test_refused_tokens_are_not_remembered_and_remembered_ones_are_bounded(monkeypatch):
    monkeypatch.setattr("lot_grpc.auth.tokens._CACHED", 3)
    verify = verifier()
    for number in range(10):
        await verify.verify(token(sub=f"agent-{number}"))
        await refusal(token(sub=f"agent-{number}", aud="x"), verify)
    assert len(verify._verified) == 3


# --- what somebody may try --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": f"{ISSUER}/"}, "another issuer"),
        ({"iss": None}, "without iss"),
        ({"iss": [ISSUER]}, "another issuer"),
        ({"aud": "other"}, "for another audience"),
        ({"aud": []}, "without aud"),
        ({"aud": [1]}, "for another audience"),
        ({"aud": {AUDIENCE: 1}}, "for another audience"),
        ({"aud": None}, "without aud"),
        ({"sub": None}, "claim sub is not a text of 1 to 255 characters"),
        ({"sub": ""}, "claim sub is not a text of 1 to 255 characters"),
        ({"sub": 7}, "claim sub is not a text of 1 to 255 characters"),
        ({"sub": "a" * 256}, "claim sub is not a text of 1 to 255 characters"),
        ({"sub": "a\nb"}, "claim sub is not printable"),
        ({"sub": "a\u202eb"}, "claim sub is not printable"),
        ({"lot_role": None}, "claim lot_role is not reader, writer or admin"),
        ({"lot_role": "owner"}, "claim lot_role is not reader, writer or admin"),
        ({"lot_role": "ADMIN"}, "claim lot_role is not reader, writer or admin"),
        ({"lot_role": ["admin"]}, "claim lot_role is not reader, writer or admin"),
        ({"lot_role": 3}, "claim lot_role is not reader, writer or admin"),
        ({"lot_role": {"admin": 1}}, "claim lot_role is not reader, writer or admin"),
        ({"lot_namespaces": None}, "claim lot_namespaces is not 1 to 256 namespaces"),
        ({"lot_namespaces": []}, "claim lot_namespaces is not 1 to 256 namespaces"),
        ({"lot_namespaces": {"a": 1}}, "claim lot_namespaces is not 1 to 256 namespaces"),
        ({"lot_namespaces": ["a"] * 257}, "claim lot_namespaces is not 1 to 256 namespaces"),
        ({"lot_namespaces": [1]}, "claim lot_namespaces is not names"),
        ({"lot_namespaces": ["a", ["*"]]}, "claim lot_namespaces is not names"),
        ({"lot_namespaces": "a b"}, "claim lot_namespaces is not names"),
        ({"lot_namespaces": "a,*"}, "claim lot_namespaces is not names"),
        ({"lot_namespaces": ["a", ""]}, "claim lot_namespaces is not names"),
    ],
)
async def test_a_signed_token_that_says_something_else_is_refused(more, why):
    assert (await refusal(token(**more))).startswith(why)


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, 1, [], "HS256"])
async def test_a_token_without_a_signature_is_refused(alg):
    header = {"alg": alg, "typ": "JWT", "kid": "k1"}
    assert await refusal(unsigned(header, payload())) == "the token's alg is not accepted"
    del header["alg"]
    assert await refusal(unsigned(header, payload())) == "the token's alg is not accepted"


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("form", ["pem", "jwk", "n"])
async def test_the_public_key_is_no_shared_secret(alg, form):
    entry = published("RSA", "k1")
    public = private_key("RSA").public_key()
    secret = {
        "pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "jwk": json.dumps(entry).encode(),
        "n": entry["n"].encode(),
    }[form]
    start = f"{coded({'alg': alg, 'kid': 'k1'})}.{coded(payload())}"
    digest = hmac.new(secret, start.encode(), f"sha{alg[2:]}").digest()
    text = f"{start}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
    assert await refusal(text) == "the token's alg is not accepted"


async def test_a_key_of_the_token_itself_is_not_used():
    mine = published("RSA", "mine", 1)
    header = {"jwk": mine, "jku": "http://evil.example/keys", "x5u": "http://evil.example"}
    assert await refusal(token(number=1, header=header)) == "wrong signature"
    assert "no key" in await refusal(token(number=1, kid="mine", header=header))


async def test_another_key_another_content_or_a_cut_signature_is_refused():
    text = token()
    head, body, signature = text.split(".")
    assert await refusal(token(number=1)) == "wrong signature"
    other = coded(payload(lot_namespaces=["*"], lot_role="admin"))
    assert await refusal(f"{head}.{other}.{signature}") == "wrong signature"
    assert await refusal(f"{head}.{body}.") == "wrong signature"
    assert await refusal(f"{head}.{body}.{coded(bytes(256))}") == "wrong signature"


async def test_a_key_is_used_for_what_it_was_published_for_only():
    assert "no key" in await refusal(token(), verifier(published("RSA", "k1", alg="PS256")))
    assert "no key" in await refusal(token("RSA", "RS256"), verifier(published("EC", "k1")))
    assert await verifier(published("RSA", "k1", alg="RS256", use="sig")).verify(token())


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"crit": ["exp"], "exp": 1}, "not of the form"),
        ({"crit": []}, "not of the form"),
        ({"b64": True}, "crit or b64"),
        ({"typ": "logout+jwt"}, "typ is not JWT"),
        ({"typ": "dpop+jwt"}, "typ is not JWT"),
        ({"typ": 5}, "typ is not JWT"),
        ({"kid": 5}, "not of the form"),
        ({"kid": ["k1"]}, "not of the form"),
        ({"kid": None}, "not of the form"),
        ({"kid": "../../etc/passwd"}, "no key"),
        ({"kid": "k1\0"}, "no key"),
        ({"kid": "K1"}, "no key"),
    ],
)
async def test_an_odd_header_is_refused(header, why):
    _, body, signature = token().split(".")
    whole = {"alg": "RS256", "kid": "k1"} | header
    assert why in await refusal(f"{coded(whole)}.{body}.{signature}")


async def test_a_payload_outside_the_token_is_refused():
    head = coded({"alg": "RS256", "kid": "k1", "b64": False, "crit": ["b64"]})
    assert await refusal(f"{head}..{coded(b'x')}") == "the token's header has crit or b64"


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "..", "...", "a.b.c", "a.b", "é.é.é", "\0", "lot_", "{}", "a" * 100_000,
        "." * 100_000, "=.=.=", token() + ".x", "x." + token(), token() + "\n", token()[:-10] + "!",
        coded([]) + ".." , coded("x") + "..", coded(b"\xff\xfe") + "..", "\udc80.a.b",
        coded(b"[" * 3000) + ".e30.e30", coded(b'{"a":' * 3000) + ".e30.e30",
        coded(b"1" * 5000) + ".e30.e30",
    ],
)  # fmt: skip
async def test_what_is_no_token_is_refused(text):
    with pytest.raises(CredentialsInvalidError) as caught:
        await verifier().verify(text)
    assert caught.value.why in ("not of the form of a token", "wrong signature")


@pytest.mark.parametrize(
    "body", [b"[]", b"1", b'"x"', b"null", b"\xff", b"", b"{", b"[" * 4000, b'{"exp":' * 900]
)
async def test_a_signed_payload_that_is_no_object_is_refused(body):
    text = signed(body, header={"kid": "k1"})
    assert await refusal(text) == "not of the form of a token"


async def test_no_part_of_a_token_is_in_an_error():
    text = token(aud="x", sub="subject-secret")
    with pytest.raises(CredentialsInvalidError) as caught:
        await verifier().verify(text)
    shown = f"{caught.value!r} {caught.value} {caught.value.why} {caught.value.message}"
    for part in (*text.split("."), "subject-secret", "k1"):
        assert part not in shown


def test_the_verifier_does_not_show_what_it_remembers():
    assert "verified" not in repr(verifier())


# --- sets of keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "k": coded(b"secret"), "kid": "k1"},
        {"kty": "RSA", "kid": "k1"},
        {"kty": "RSA", "kid": "k1", "n": "!", "e": "AQAB"},
        {"kty": "EC", "crv": "secp256k1", "kid": "k1", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "kid": "k1", "x": "AA", "y": "AA"},
        {"kty": ["RSA"], "kid": "k1"},
        {"kid": "k1"},
        published("RSA", "k1", use="enc"),
        published("RSA", "k1", key_ops=["encrypt"]),
        published("RSA", "k1", key_ops="verify"),
        published("RSA", "k1", alg="HS256"),
        published("RSA", "k1", alg="none"),
        published("RSA", "k1", alg="ES256"),
        published("RSA", "k1", alg=None),
        published("RSA", "k1") | {"kid": 5},
        published("RSA1024", "k1"),
    ],
)
def test_a_key_that_cannot_verify_signatures_is_ignored(entry):
    with pytest.raises(Exception, match="test has no usable key"):
        parse_key_set("test", key_set(entry))
    keys = parse_key_set("test", key_set(entry, published("EC", "k2")))
    assert len(keys) == 1
    assert keys.find("k1", "RS256") is None


def test_a_private_part_that_was_published_is_left_alone():
    from jwt.algorithms import RSAAlgorithm

    entry = json.loads(RSAAlgorithm.to_jwk(private_key("RSA"))) | {"kid": "k1"}
    entry.pop("key_ops")
    key = parse_key_set("test", key_set(entry)).find("k1", "RS256")
    assert key is not None
    assert not hasattr(key.key, "private_numbers")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys":{}}', b"\xff", b"[" * 10_000])
def test_what_is_no_set_of_keys_is_refused(content):
    with pytest.raises(Exception, match="test is not a set of keys"):
        parse_key_set("test", content)
    with pytest.raises(Exception, match="no usable key"):
        parse_key_set("test", b'{"keys":[1,null,"x",[]]}')


def test_keys_of_one_kid_are_told_apart_by_their_algorithm():
    keys = parse_key_set("test", key_set(published("RSA", "k"), published("EC", "k")))
    found = keys.find("k", "ES256")
    assert found is not None
    assert found.algorithms == ("ES256",)
    twice = parse_key_set("test", key_set(published("RSA", "k"), published("RSA", "k", 1)))
    assert twice.find("k", "RS256") is None
