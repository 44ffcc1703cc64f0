"""The vocabulary of error messages, most frequent first."""

from __future__ import annotations

from typing import Final

from lot_grpc.data import read_words

RANK: Final = {word: rank for rank, word in enumerate(read_words("message_words.txt"))}
