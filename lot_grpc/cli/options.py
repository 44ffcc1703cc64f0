"""Options that several commands share, and dataclasses as groups of options."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from typer import Option

from lot_grpc.cli.failures import FAILED, reported
from lot_grpc.cli.words import ORIGIN_KINDS, PATTERN_KINDS, REVIEW_STATES
from lot_grpc.pb.lot.v1.origin_pb2 import OriginKind, ReviewState
from lot_grpc.pb.lot.v1.pattern_pb2 import PatternFilter, PatternKind

V = TypeVar("V")


def command(function: Callable[..., bool | None]) -> Callable[..., None]:
    """Turn a function into one that typer accepts.

    A parameter whose type is a dataclass is expanded to one option per field; its default, if it
    has one, gives theirs. Failures are reported; returning False (and only False) is one too.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    keyword = inspect.Parameter.KEYWORD_ONLY
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if not dataclasses.is_dataclass(group := parameter.annotation):
            parameters.append(parameter.replace(kind=keyword))
            continue
        groups[parameter.name] = group
        types = get_type_hints(group, include_extras=True)
        for field in dataclasses.fields(group):
            default = getattr(parameter.default, field.name, field.default)
            parameters.append(
                inspect.Parameter(
                    field.name, keyword, default=default, annotation=types[field.name]
                )
            )

    @functools.wraps(function)
    def run(**options: Any) -> None:
        for name, group in groups.items():
            fields = dataclasses.fields(group)
            options[name] = group(**{field.name: options.pop(field.name) for field in fields})
        with reported():
            if function(**options) is False:
                raise typer.Exit(FAILED)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def new_file(value: V) -> V:
    """Reject up front a file that could not be written at the end."""
    if value is None or str(value) == "-":
        return value
    path = Path(str(value))
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give a file")
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}; create it or choose another file"
        )
    return value


def limit_option(default: str, most: int | None = None) -> Any:
    """An option for the maximum number; ``default`` says what 0 means."""
    help_text = f"At most N; 0: {default}."
    return Option(0, "--limit", "-l", min=0, max=most, metavar="N", help=help_text)


def time_option(name: str, help: str) -> Any:
    """An option for a time; None unless it is given."""
    return Option(None, name, metavar="TIME", parser=_time, help=help)


def _time(text: str) -> Timestamp | None:
    """The time of an option; None if it is empty, which scripts may pass."""
    if not text:
        return None
    from lot_grpc.cli.times import moment

    time = Timestamp()
    try:
        time.FromDatetime(moment(text, datetime.now(UTC)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return time


def min_match_option(what: str, usual: str = "0.05") -> Any:
    """An option for the minimum probability that ``what`` fit."""
    help_text = f"Omit {what} that are less likely to fit; {usual} is a good start."
    return Option(None, "--min-match", min=0, max=1, metavar="P", help=help_text)


Config = Annotated[
    Path | None,
    Option("--config", "-c", metavar="FILE", help="Settings file (TOML); defaults to LOT_CONFIG."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
JsonLines = Annotated[bool, Option("--json", help="Print one JSON object per line.")]
OWN_NAMESPACE = "your own namespace"
"""What to call that of requests without one: only the server knows which it is for a key."""

Namespace = Annotated[
    str,
    Option(
        "--namespace",
        "-n",
        help="Namespace; empty: that of the key, or `default`.",
        show_default=False,
    ),
]
Timeout = Annotated[float, Option("--timeout", min=0.1, help="Seconds to wait.")]
Patience = Annotated[
    float, Option("--timeout", min=0, help="Seconds to wait for a lost server; 0: forever.")
]
Repeatable = list[str] | None


@dataclass(frozen=True)
class PatternOptions:
    """Options that select patterns; by default all."""

    language: Annotated[
        Repeatable, Option("--language", help="In this language. Repeatable, like the next three.")
    ] = None
    kind: Annotated[
        list[PatternKind.ValueType] | None,
        PATTERN_KINDS.option(..., "--kind", help="Of this kind: task, code, learned or distilled."),
    ] = None
    category: Annotated[Repeatable, Option("--category", help="In this category.")] = None
    task_type: Annotated[Repeatable, Option("--task-type", help="For this type of task.")] = None
    origin: Annotated[
        list[OriginKind.ValueType] | None,
        ORIGIN_KINDS.option(
            ...,
            "--origin",
            help="Of this kind of origin: person, tool, agent, extraction, model or import. "
            "Repeatable.",
        ),
    ] = None
    review: Annotated[
        list[ReviewState.ValueType] | None,
        REVIEW_STATES.option(
            ...,
            "--review",
            help="With this review state: pending, approved or rejected. Repeatable. Without it, a "
            "recall omits pending and rejected patterns.",
        ),
    ] = None
    min_success_rate: Annotated[
        float,
        Option(
            "--min-success-rate",
            min=0,
            max=1,
            metavar="RATE",
            help="With at least this success rate. A pattern that has not been used yet has the "
            "rate it was saved with, usually 1; see --min-usage.",
        ),
    ] = 0.0
    min_usage: Annotated[
        int, Option("--min-usage", min=0, metavar="N", help="Used at least N times.")
    ] = 0

    def filter(self) -> PatternFilter:
        """The filter of the contract."""
        return PatternFilter(
            languages=self.language,
            kinds=self.kind,
            categories=self.category,
            task_types=self.task_type,
            origins=self.origin,
            reviews=self.review,
            min_success_rate=self.min_success_rate or None,
            min_usage_count=self.min_usage,
        )
