"""Values of the contract's enums as words on the command line, and messages as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import typer
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from lot_grpc.domain.json_values import with_whole_numbers
from lot_grpc.pb.lot.v1 import (
    change_pb2,
    episode_pb2,
    origin_pb2,
    outcome_pb2,
    pattern_pb2,
    resource_kind_pb2,
    retrieval_pb2,
)
from lot_grpc.pb.lot.v1 import transfer_pb2 as transfer

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper

V = TypeVar("V", bound=int)


def enum_word(enum: EnumDescriptor, number: int) -> str:
    """The name of a value without the enum's prefix, in lower case; its number if unknown."""
    value = enum.values_by_number.get(number)
    if value is None:  # from a newer server
        return str(number)
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()
    return str(value.name).removeprefix(f"{prefix}_").lower()


class Words(Generic[V]):
    """The words of one enum, for output and input.

    ``lead`` precedes each word in output, and is optional in input.
    """

    def __init__(self, enum: _EnumTypeWrapper[V], *, between: str = "_", lead: str = "") -> None:
        self._enum = enum.DESCRIPTOR
        self._between = between
        self._lead = lead
        self._numbers = {self.word(number): number for number in enum.values() if number}

    def word(self, number: int) -> str:
        """The word of a value; for a value of a newer server, its number."""
        if number not in self._enum.values_by_number:
            return str(number)
        word = enum_word(self._enum, number).replace("_", self._between)
        return word if self._between in word else self._lead + word

    def parse(self, text: str) -> V:
        """The value of a word.

        Raises:
            BadParameter: The word is unknown.
        """
        word = text.strip().lower()
        word = word if word in self._numbers else self._lead + word
        if word not in self._numbers:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(self._numbers)}")
        return self._numbers[word]

    def option(self, default: Any, name: str, *, help: str, metavar: str = "") -> Any:
        """An option that takes one of the words, or a list of them."""
        return typer.Option(
            default,
            name,
            parser=self.parse,
            callback=_without_repeats,
            metavar=metavar or name.strip("-").upper(),
            help=help,
        )


def _without_repeats(value: Any) -> Any:
    return list(dict.fromkeys(value)) if isinstance(value, Sequence) else value


STATUSES = Words(episode_pb2.EpisodeStatus)
OUTCOMES = Words(outcome_pb2.Outcome)
RANKINGS = Words(outcome_pb2.Ranking)
PATTERN_KINDS = Words(pattern_pb2.PatternKind)
PATTERN_TYPES = Words(pattern_pb2.PatternType)
CODE_KINDS = Words(pattern_pb2.CodeKind)
RESOURCE_KINDS = Words(resource_kind_pb2.ResourceKind)
RETRIEVAL_METHODS = Words(retrieval_pb2.RetrievalMethod)
CHANGE_TYPES = Words(change_pb2.ChangeType, between=".", lead="record.")
ORIGIN_KINDS = Words(origin_pb2.OriginKind)
REVIEW_STATES = Words(origin_pb2.ReviewState)
CONFLICTS = Words(transfer.ImportConflictPolicy)


def json_line(message: Message) -> str:
    """The message as JSON on one line: all fields, with the names of the contract."""
    return json_page(message, indent=None)


def json_page(message: Message, indent: int | None = 2) -> str:
    """The message as indented JSON."""
    fields = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return json.dumps(with_whole_numbers(fields), indent=indent)
