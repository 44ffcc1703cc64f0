"""Values of the contract's enums as words on the command line, and messages as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from lot_grpc.domain.json_values import with_whole_numbers
from lot_grpc.pb.lot.v1 import change_pb2, episode_pb2, outcome_pb2, pattern_pb2, resource_kind_pb2

V = TypeVar("V", bound=int)


class Words(Generic[V]):
    """The words of one enum: the names without their prefix, in small letters.

    ``lead`` comes before each word where words are shown, and may be left out where they are read.
    """

    def __init__(
        self, values: Iterable[tuple[str, V]], prefix: str, *, between: str = "_", lead: str = ""
    ) -> None:
        self._lead = lead
        self._words: dict[int, str] = {}
        self._numbers: dict[str, V] = {}
        for name, number in values:
            if number:
                word = name.removeprefix(prefix).lower().replace("_", between)
                self._words[number] = word
                self._numbers[word] = number

    def word(self, number: int) -> str:
        """The word of a value; of one that a newer server has, its number."""
        return self._lead + self._words[number] if number in self._words else str(number)

    def numbers(self, option: str, wanted: Sequence[str]) -> list[V]:
        """The values of words that were given, each once.

        Raises:
            BadParameter: One is no such word.
        """
        found: dict[V, None] = {}
        for word in wanted:
            plain = word.strip().lower()
            number = self._numbers.get(plain.removeprefix(self._lead))
            if number is None:
                known = ", ".join(map(self.word, sorted(self._words)))
                raise typer.BadParameter(f"{option} {word!r} is none of {known}")
            found[number] = None
        return list(found)


STATUSES = Words(episode_pb2.EpisodeStatus.items(), "EPISODE_STATUS_")
COMPLEXITIES = Words(outcome_pb2.Complexity.items(), "COMPLEXITY_")
OUTCOMES = Words(outcome_pb2.Outcome.items(), "OUTCOME_")
RANKINGS = Words(outcome_pb2.Ranking.items(), "RANKING_")
PATTERN_KINDS = Words(pattern_pb2.PatternKind.items(), "PATTERN_KIND_")
PATTERN_TYPES = Words(pattern_pb2.PatternType.items(), "PATTERN_TYPE_")
CODE_KINDS = Words(pattern_pb2.CodeKind.items(), "CODE_KIND_")
RESOURCE_KINDS = Words(resource_kind_pb2.ResourceKind.items(), "RESOURCE_KIND_")
CHANGE_TYPES = Words(change_pb2.ChangeType.items(), "CHANGE_TYPE_", between=".", lead="memory.")


def json_line(message: Message) -> str:
    """The message as JSON on one line: all fields, with the names of the contract."""
    return json_page(message, indent=None)


def json_page(message: Message, indent: int | None = 2) -> str:
    """The same on as many lines as it takes."""
    fields = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return json.dumps(with_whole_numbers(fields), indent=indent)
