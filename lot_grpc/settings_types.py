"""What groups of settings are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
)


class Group(BaseModel):
    """Settings that belong together.

    ``env_prefix`` is the prefix of their variables; that of ``env_main`` is the prefix alone.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=True, validate_default=True
    )
    env_prefix: ClassVar[str] = "LOT_"
    env_main: ClassVar[str] = ""


def empty_is_none(value: object) -> object:
    """None for an empty text, as an unset variable."""
    return None if value == "" else value


OptionalPath = Annotated[
    Annotated[Path, AfterValidator(Path.expanduser)] | None, BeforeValidator(empty_is_none)
]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(empty_is_none)]


def listed(value: object) -> object:
    """A list from the comma-separated form of an environment variable."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


Namespace = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
