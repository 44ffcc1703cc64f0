"""The loaded cross-encoder: a query and a text in, a score of how well the text answers it out.

Pairs run one by one, never as an ONNX batch, for the reason given in ``.model``: the int8 model
quantizes over the whole batch, so a pair's logit varied by up to 0.45 with the rest of its batch.
20 pairs of 15 words on two free cores: 75 ms singly on two threads; as one batch 134 ms on one
thread, 104 on two; 64 in batches of 5. Singly they take a fifth more CPU time in all, which matters
when the cores are busy.

ONNX Runtime and tokenizers are called directly, not through fastembed's ``TextCrossEncoder``: it
cuts the query if that is the longer one, and took 132 ms where this takes 100.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.model_files import RerankerFiles
from lot_grpc.embedding.onnx_session import open_session

MAX_QUERY_TOKENS = 128
"""Tokens read of a query, so that a long one leaves 381 of 512 for the text."""

_CHARACTERS_PER_TOKEN = 32
"""Far more than in any prose or code; longer texts are cut before tokenizing."""


class PairScorer(Protocol):
    """The interface that the reranker's threads run. ``score`` is called concurrently."""

    @property
    def max_characters(self) -> int:
        """Maximum useful length of a query or a text, in characters; the rest is not read."""

    def score(self, query: str, text: str) -> float:
        """How well ``text`` answers ``query``, in [0, 1], on the calling thread."""


class OnnxCrossEncoder:
    """A cross-encoder on ONNX Runtime. Safe to share between threads.

    The first 128 tokens of a query are read, and as much of the text as then fits in the model's
    512, with the three that mark the parts. A pair's score depends only on the pair and the model.
    """

    def __init__(self, files: RerankerFiles) -> None:
        """Load the model (about 0.2 s, 34 MB) and run it once.

        Raises:
            ModelUnavailableError: The files are not that model, or not a model at all.
        """
        model = files.folder / files.model_file
        self._max_tokens = files.card.max_tokens
        try:
            self._tokenizer = _tokenizer(files)
            self._session = open_session(model)
            self._inputs = {one.name for one in self._session.get_inputs()}
            shape = self._run("ready", "steady").shape
        except Exception as error:
            raise ModelUnavailableError(
                f"{model} cannot be loaded: {error}", path=files.folder
            ) from error
        if shape != (1, 1):
            raise ModelUnavailableError(
                f"{model} returns output of shape {shape} instead of one logit per pair; it is not "
                f"{files.card.name}",
                path=files.folder,
            )

    @property
    def max_characters(self) -> int:
        """Maximum useful length of a query or a text, in characters; the rest is not read."""
        return self._max_tokens * _CHARACTERS_PER_TOKEN

    def score(self, query: str, text: str) -> float:
        """How well ``text`` answers ``query``, in [0, 1], on the calling thread.

        Raises:
            ValueError: The model returned no finite number.
        """
        cut = self.max_characters
        logit = float(self._run(self._cut_query(query[:cut]), text[:cut])[0, 0])
        if not math.isfinite(logit):
            raise ValueError("the model returned a score that is not finite")
        return _sigmoid(logit)

    def _cut_query(self, query: str) -> str:
        # A token has at least one byte of UTF-8, so most queries need not be tokenized twice.
        if len(query.encode()) <= MAX_QUERY_TOKENS:
            return query
        # As the second of a pair: a tokenizer that truncates the second rejects single texts.
        read = self._tokenizer.encode("", query)
        parts = zip(read.sequence_ids, read.offsets, strict=True)
        starts = [start for part, (start, _) in parts if part == 1]
        return query if len(starts) <= MAX_QUERY_TOKENS else query[: starts[MAX_QUERY_TOKENS]]

    def _run(self, query: str, text: str) -> Any:
        pair = self._tokenizer.encode(query, text)
        given = {
            "input_ids": pair.ids,
            "attention_mask": pair.attention_mask,
            "token_type_ids": pair.type_ids,
        }
        return self._session.run(
            None,
            {name: np.array([given[name]], dtype=np.int64) for name in self._inputs},
        )[0]


def _tokenizer(files: RerankerFiles) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files.folder / "tokenizer.json"))
    tokenizer.no_padding()
    # A literal "[SEP]" is plain text: it ends neither the query nor the text.
    tokenizer.encode_special_tokens = True
    tokenizer.enable_truncation(files.card.max_tokens, strategy="only_second")
    return tokenizer


def _sigmoid(logit: float) -> float:
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    small = math.exp(logit)  # the other form would overflow
    return small / (1 + small)
