"""What clients of the soak share: where they are, and which errors they live with."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from grpc import StatusCode
from lot_client import LotError

from tests.soak.journal import Journal

_PASSES = {
    StatusCode.UNAVAILABLE,
    StatusCode.CANCELLED,
    StatusCode.UNKNOWN,
    StatusCode.INTERNAL,
    StatusCode.DEADLINE_EXCEEDED,
}

_CALM = 4


@dataclass
class Post:
    """Where a client stands.

    Attributes:
        address: of the proxy.
        folder: for what it keeps.
    """

    address: str
    name: str
    folder: Path
    journal: Journal
    dice: random.Random

    def pause(self, seconds: float) -> float:
        """How long to wait between two things, on average so long; longer in the calm."""
        return self.dice.uniform(0, 2 * seconds) * (_CALM if (self.folder / "calm").exists() else 1)

    @property
    def over(self) -> bool:
        """The run is: finish what was begun."""
        return (self.folder / "over").exists()


def passes(error: LotError) -> bool:
    """The way to the server failed, or it is going away: what was asked for is in doubt."""
    if error.reason:
        return error.code is StatusCode.UNAVAILABLE or error.reason == "CONTENTION"
    return error.code in _PASSES


def edits(metadata: Struct) -> int:
    """How often a pattern was edited: writers count it in its metadata."""
    return int(MessageToDict(metadata).get("version", 0))
