"""Made-up keys in the shape of real ones, drawn from a seed and put together here from parts.

None was ever issued. Prefixes are split so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

DIGITS = string.digits
LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
HEX = "0123456789abcdef"
BASE62 = LOWER + UPPER + DIGITS
BASE64 = BASE62 + "+/"
URL64 = BASE62 + "_-"
Make = Callable[[random.Random], str]


def drawn(letters: str, count: int, *prefix: str) -> Make:
    """A text that begins with the joined prefix, and has so many random characters after it."""
    return lambda r: "".join(prefix) + "".join(r.choice(letters) for _ in range(count))


def joined(*parts: Make | str) -> Make:
    """A text of several parts."""
    return lambda r: "".join(part if isinstance(part, str) else part(r) for part in parts)


def _base64(make: Make) -> Make:
    return lambda r: base64.b64encode(make(r).encode()).decode()


def _jwt(r: random.Random) -> str:
    head = {"alg": r.choice(["RS256", "HS256", "ES256"]), "typ": "JWT"}
    body = {"sub": drawn(DIGITS, 9)(r), "exp": r.randrange(10**9)}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (head, body)]
    coded = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return ".".join([*coded, drawn(URL64, 43)(r)])


def _block(kind: str, lines: int = 12, newline: str = "\n", *, end: bool = True) -> Make:
    def make(r: random.Random) -> str:
        body = [drawn(BASE64, 64)(r) for _ in range(lines)]
        last = [f"-----END {kind}-----"] if end else []
        return newline.join([f"-----BEGIN {kind}-----", *body, *last])

    return make


_PRIVATE = " ".join(("PRIVATE", "KEY"))

FIT: dict[str, Make] = {
    "private_key": _block(f"RSA {_PRIVATE}"),
    "private_key escaped": _block(_PRIVATE, newline="\\n"),
    "age_key": drawn(UPPER + DIGITS, 58, "AGE-SECRET", "-KEY-1"),
    "aws_access_key_id": drawn(UPPER + "234567", 16, "AK", "IA"),
    "gcp_api_key": drawn(URL64, 35, "AI", "za"),
    "google_oauth": drawn(URL64, 28, "GOC", "SPX-"),
    "azure_client_secret": joined(drawn(BASE62, 3), drawn(DIGITS, 1), "Q~", drawn(BASE62, 34)),
    "azure_key": joined(drawn(BASE62, 52), "JQ", "QJ9", drawn(BASE62, 27)),
    "digitalocean": drawn(HEX, 64, "dop", "_v1_"),
    "github_token": drawn(BASE62, 36, "gh", "p_"),
    "gitlab_token": drawn(URL64, 20, "gl", "pat-"),
    "npm_token": drawn(BASE62, 36, "np", "m_"),
    "pypi_token": drawn(URL64, 120, "pypi-", "AgEIcHlwaS5vcmc"),
    "docker_token": drawn(URL64, 27, "dckr", "_pat_"),
    "anthropic_key": drawn(URL64, 93, "sk-", "ant-api03-"),
    "openai_key": drawn(URL64, 120, "sk-", "proj-"),
    "huggingface_token": drawn(LOWER + UPPER, 34, "h", "f_"),
    "model_key": drawn(BASE62, 52, "gs", "k_"),
    "slack_token": joined(
        drawn(DIGITS, 12, "xo", "xb-"), "-", drawn(DIGITS, 12), "-", drawn(BASE62, 24)
    ),
    "stripe_key": drawn(BASE62, 24, "sk", "_live_"),
    "twilio_key": drawn(HEX, 32, "S", "K"),
    "sendgrid_key": joined(drawn(URL64, 22, "S", "G."), ".", drawn(URL64, 43)),
    "telegram_token": joined(drawn(DIGITS, 9), ":A", "A", drawn(URL64, 33)),
    "service_token": drawn(HEX, 32, "shp", "at_"),
    "lot_key": joined("lo", "t_", drawn(HEX, 8), "_", drawn(HEX, 64)),
    "jwt": _jwt,
}
"""Keys that anyone recognizes wherever they stand, by the rule that finds them (and a variant)."""

HELD_OUT: dict[str, Make] = {
    "private_key": _block(f"OPENSSH {_PRIVATE}", 7),
    "private_key pgp": _block(f"PGP {_PRIVATE} BLOCK", 20),
    "private_key cut off": _block(f"EC {_PRIVATE}", 4, end=False),
    "aws_access_key_id": drawn(UPPER + "234567", 16, "AS", "IA"),
    "gcp_api_key": drawn(URL64, 35, "AI", "za"),
    "google_oauth": drawn(URL64, 160, "ya", "29."),
    "google_oauth refresh": drawn(URL64, 60, "1/", "/0"),
    "azure_client_secret": joined(
        drawn(BASE62, 3), drawn(DIGITS, 1), "Q~", drawn(BASE62 + "-_.", 33), drawn(BASE62, 1)
    ),
    "azure_key": joined(drawn(BASE62, 76), "AZ", "DO", drawn(BASE62, 4)),
    "digitalocean": drawn(HEX, 64, "dor", "_v1_"),
    "github_token": joined(drawn(BASE62, 22, "github", "_pat_"), "_", drawn(BASE62, 59)),
    "github_token app": drawn(BASE62, 36, "gh", "s_"),
    "gitlab_token": joined(drawn(URL64, 27, "gl", "rt-"), ".01.", drawn(BASE62, 9)),
    "npm_token": drawn(BASE62, 36, "np", "m_"),
    "pypi_token": drawn(URL64, 140, "pypi-", "AgENdGVzdC5weXBpLm9yZw"),
    "docker_token": drawn(URL64, 32, "dckr", "_oat_"),
    "anthropic_key": drawn(URL64, 95, "sk-", "ant-oat01-"),
    "openai_key": joined(drawn(BASE62, 20, "s", "k-"), "T3Blbk", "FJ", drawn(BASE62, 20)),
    "openai_key service": drawn(URL64, 70, "sk-", "svcacct-"),
    "openai_key hexadecimal": drawn(HEX, 32, "s", "k-"),
    "huggingface_token": drawn(LOWER + UPPER, 34, "api", "_org_"),
    "model_key": drawn(BASE62, 80, "xa", "i-"),
    "slack_token": joined(
        drawn(DIGITS, 11, "xa", "pp-1-A"), "-", drawn(DIGITS, 13), "-", drawn(HEX, 64)
    ),
    "slack_token user": joined(
        *("xo", "xp-", drawn(DIGITS, 12), "-", drawn(DIGITS, 12)),
        *("-", drawn(DIGITS, 13), "-", drawn(HEX, 32)),
    ),
    "stripe_key": drawn(BASE62, 99, "rk", "_live_"),
    "stripe_key webhook": drawn(BASE62, 32, "wh", "sec_"),
    "sendgrid_key": joined(drawn(URL64, 22, "S", "G."), ".", drawn(URL64, 43)),
    "telegram_token": joined(drawn(DIGITS, 10), ":A", "A", drawn(URL64, 32), drawn(BASE62, 1)),
    "service_token": drawn(URL64, 95, "hv", "s."),
    "service_token linear": drawn(BASE62, 40, "lin", "_api_"),
    "lot_key": joined("lo", "t_", drawn(HEX, 8), "_", drawn(HEX, 64)),
    "jwt": _jwt,
}

WORDS = ("harbor", "willow", "copper", "meadow", "falcon", "pebble", "amber", "cedar")


def _weak(r: random.Random) -> str:
    return r.choice(WORDS).capitalize() + r.choice("!#%+") + drawn(DIGITS, 3)(r)


PLACED: dict[str, Make] = {
    "aws_secret_key": drawn(BASE64, 40),
    "azure_storage_key": joined(drawn(BASE64, 86), "=="),
    "azure_sas": joined(drawn(BASE62 + "%", 43), "%3D"),
    "authorization": drawn(URL64, 40),
    "basic_auth": _base64(joined("svc", ":", _weak)),
    "url_password": drawn(BASE62, 12),
    "command_password": drawn(BASE62, 10),
    "connection_string": _weak,
    "password": _weak,
    "password drawn": drawn(BASE62 + "!#%-_", 18),
    "assigned_key": drawn(BASE62, 32),
    "assigned_key hexadecimal": drawn(HEX, 40),
    "discord_token": joined(
        *("M", "T", drawn(BASE62, 22), ".", drawn(BASE62, 6), ".", drawn(URL64, 37)),
        *(drawn(BASE62, 1),),
    ),
    "npm_token": drawn(BASE62, 28),
    "twilio_key": drawn(HEX, 32),
    "slack_token": joined("T", drawn(BASE62, 8), "/B", drawn(BASE62, 9), "/", drawn(BASE62, 24)),
}
"""Secrets that only their place shows, by rule."""
