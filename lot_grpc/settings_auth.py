"""Settings of authentication: who may call."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from lot_grpc.settings_types import Group, OptionalPath

_URL = re.compile(r"https?://[^\s@#]+")
_CLAIM = r"^[!-~]{1,200}$"


class AuthSettings(Group):
    """The file with API keys and the names of client certificates."""

    env_prefix = "LOT_AUTH_"

    keys: OptionalPath = None


class OidcSettings(Group):
    """The OIDC provider whose tokens are accepted, and what their claims mean."""

    env_prefix = "LOT_OIDC_"

    issuer: str = Field(default="", max_length=2048)
    audience: str = Field(default="", max_length=2048)
    jwks: str = ""
    subject_claim: str = Field(default="sub", pattern=_CLAIM)
    namespaces_claim: str = Field(default="lot_namespaces", pattern=_CLAIM)
    role_claim: str = Field(default="lot_role", pattern=_CLAIM)

    @field_validator("jwks")
    @classmethod
    def _is_a_path_or_url(cls, value: str) -> str:
        if "://" in value and not _URL.fullmatch(value):
            raise ValueError("should be a path, or an https URL without a user")
        return value
