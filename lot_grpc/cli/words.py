"""Values of the contract's enums as words on the command line, and messages as lines of JSON."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message

from lot_grpc.pb.lot.v1 import change_pb2, episode_pb2, noun_pb2, outcome_pb2


class Words:
    """The words of one enum: the names without their prefix, in small letters.

    ``lead`` comes before each word where words are shown, and may be left out where they are read.
    """

    def __init__(
        self, kind: EnumTypeWrapper, prefix: str, *, between: str = "_", lead: str = ""
    ) -> None:
        self._lead = lead
        self._words = {
            number: name.removeprefix(prefix).lower().replace("_", between)
            for name, number in kind.items()
            if number
        }

    def word(self, number: int) -> str:
        """The word of a value; of one that a newer server has, its number."""
        return self._lead + self._words[number] if number in self._words else str(number)

    def numbers(self, option: str, wanted: Sequence[str]) -> list[int]:
        """The values of words that were given, each once.

        Raises:
            BadParameter: One is no such word.
        """
        by_word = {word: number for number, word in self._words.items()}
        found: dict[int, None] = {}
        for word in wanted:
            plain = word.strip().lower()
            number = by_word.get(plain, by_word.get(plain.removeprefix(self._lead)))
            if number is None:
                known = ", ".join(map(self.word, sorted(self._words)))
                raise typer.BadParameter(f"{option} {word!r} is none of {known}")
            found[number] = None
        return list(found)


STATUSES = Words(episode_pb2.EpisodeStatus, "EPISODE_STATUS_")
COMPLEXITIES = Words(outcome_pb2.Complexity, "COMPLEXITY_")
NOUNS = Words(noun_pb2.Noun, "NOUN_")
CHANGE_TYPES = Words(change_pb2.ChangeType, "CHANGE_TYPE_", between=".", lead="memory.")


def json_line(message: Message) -> str:
    """The message as JSON on one line: all fields, with the names of the contract."""
    return MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
        indent=None,
    )
