"""The public keys that an issuer signs tokens with (JWKS, RFC 7517)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import jwt
from jwt.types import JWKDict
from pydantic_core import from_json

from lot_grpc.auth.files import FileError

_MIN_RSA_BITS: Final = 2048
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_TYPE: Final[Mapping[tuple[str, object], tuple[str, ...]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""The algorithms of a key by its type and curve. None of them works with a shared secret."""

ALGORITHMS: Final = frozenset(one for listed in _BY_TYPE.values() for one in listed)
"""Every algorithm that is accepted."""

_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
"""What is read of a key. If the private part was published too, it is left alone."""


class SigningKey(NamedTuple):
    """A public key, and the algorithms that it may be used with."""

    id: str
    key: Any
    algorithms: tuple[str, ...]


class KeySet:
    """The usable keys of a set. Others, as those for encryption, are ignored."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        self._keys = keys

    def find(self, id: str, algorithm: str) -> SigningKey | None:
        """The key for a token with a ``kid``; for one without (empty), if there is only one."""
        usable = [one for one in self._keys if algorithm in one.algorithms]
        found = [one for one in usable if one.id == id] if id else usable
        return found[0] if len(found) == 1 else None

    def __len__(self) -> int:
        return len(self._keys)


def parse_key_set(source: str, content: bytes) -> KeySet:
    """The keys in a JSON object. Raises FileError, which names the source and quotes nothing."""
    try:
        listed = from_json(content)["keys"]
    except (ValueError, TypeError, LookupError):
        listed = None
    if not isinstance(listed, list):
        raise FileError(f"{source} is not a set of keys: a JSON object with a list `keys`")
    keys = [one for entry in listed if isinstance(entry, dict) and (one := _signing_key(entry))]
    if not keys:
        raise FileError(
            f"{source} has no usable key: RSA of {_MIN_RSA_BITS} bits or more, EC (P-256, P-384, "
            "P-521) or Ed25519, for signatures"
        )
    return KeySet(keys)


def _signing_key(entry: JWKDict) -> SigningKey | None:
    """A key that can verify signatures; None if it is for something else."""
    kind, kid = entry.get("kty"), entry.get("kid", "")
    curve = None if kind == "RSA" else entry.get("crv")
    if not all(isinstance(one, str) for one in (kind, kid, curve or "")):
        return None
    algorithms = _BY_TYPE.get((str(kind), curve), ())
    if "alg" in entry:
        algorithms = tuple(one for one in algorithms if one == entry["alg"])
    operations = entry.get("key_ops", ["verify"])
    signs = entry.get("use", "sig") == "sig" and (
        isinstance(operations, list) and "verify" in operations
    )
    if not algorithms or not signs:
        return None
    public: JWKDict = {name: entry[name] for name in _PUBLIC if name in entry}
    try:
        key = jwt.PyJWK.from_dict(public, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if kind == "RSA" and key.key_size < _MIN_RSA_BITS:
        return None
    return SigningKey(kid, key, algorithms)
