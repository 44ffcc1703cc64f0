"""The loaded model: one text in, one unit vector out.

Texts run one by one, never as an ONNX batch. Measured on the int8 model: its activations are
quantized over the whole batch, so a text's vector depended on the rest of its batch (cosine down to
.989 against the text alone, even among texts of equal length), and a batch of 32 mixed texts cost
twice as much per text as running them singly on as many threads.

A text that is embedded alone may run on two threads, and its vector is bit-identical: a query of 24
tokens then takes 1.65 ms instead of 2.3, a text of 120 tokens 5.9 instead of 10.1. Concurrent texts
run on one thread each: on two threads each, they take twice the CPU time and reach half the rate.

ONNX Runtime and tokenizers are called directly, not through fastembed's ``TextEmbedding``, which
adds 0.15 ms to each text and takes 0.4 s to import.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.model_files import ModelFiles
from lot_grpc.embedding.onnx_session import open_session
from lot_grpc.embedding.thread_choice import ThreadChoice
from lot_grpc.embedding.tokenizer import load_tokenizer
from lot_grpc.embedding.windows import MOST_WINDOWS, Windows, split_text

_CHARACTERS_PER_TOKEN = 32
"""Far more than in any prose or code; longer texts are cut before tokenizing."""

_THREADS_ALONE = 2
"""Threads for a text that is embedded alone. Each occupies a core while the text runs; more
were not measured."""

_SMALLEST = 1e-12
"""Smallest divisor when a vector is scaled to length 1, so that a zero vector stays zero."""


class Encoded(NamedTuple):
    """A unit vector, and whether some of the text was not read."""

    vector: NDArray[np.float32]
    truncated: bool


class Encoder(Protocol):
    """The interface that the embedder's threads run. ``encode`` is called concurrently."""

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads at once."""

    @property
    def max_characters(self) -> int:
        """Maximum useful length of a text, in characters; the rest is not read."""

    def split(self, prefix: str, text: str) -> Windows | None:
        """The windows of a text that is too long with its prefix; None if it is not."""

    def count(self, text: str) -> int:
        """How many tokens a text of any length has, special tokens included."""

    def encode(self, text: str, *, alone: bool = False) -> NDArray[np.float32]:
        """A unit vector of one text that is not too long. Blocks the calling thread.

        ``alone``: no other text is being embedded, so it may use idle cores.
        """


class OnnxEncoder:
    """A model on ONNX Runtime. Safe to share between threads."""

    def __init__(self, files: ModelFiles, *, threads: int = 1) -> None:
        """Load the model (about 0.1 s, 75 MB) and run it once.

        Args:
            files: The model.
            threads: Cores that it may use. With more than one, the model is loaded a second time
                (40 MB), for texts that are embedded alone.

        Raises:
            ModelUnavailableError: The files are not that model, or not a model at all.
        """
        model = files.folder / files.model_file
        self._choice = ThreadChoice()
        self._mean = files.card.pooling == "mean"
        try:
            self._tokenizer = load_tokenizer(files.folder)
            self.max_tokens = int(self._tokenizer.truncation["max_length"])
            self._session = open_session(model)
            self._session_alone = open_session(model, _THREADS_ALONE) if threads > 1 else None
            self._inputs = {one.name for one in self._session.get_inputs()}
            self._outputs = [self._session.get_outputs()[0].name]
            dimensions = len(self.encode("ready"))
        except Exception as error:
            raise ModelUnavailableError(
                f"{model} cannot be loaded: {error}", path=files.folder
            ) from error
        if dimensions != files.card.dimensions:
            raise ModelUnavailableError(
                f"{model} returns {dimensions} dimensions, but "
                f"{files.card.name} has {files.card.dimensions}; it is a different model",
                path=files.folder,
            )

    @property
    def max_characters(self) -> int:
        """Maximum useful length of a text, in characters; the rest is not read."""
        return MOST_WINDOWS * self.max_tokens * _CHARACTERS_PER_TOKEN

    def split(self, prefix: str, text: str) -> Windows | None:
        """The windows of a text that is too long with its prefix; None if it is not.

        Tokenizing takes about 1 ms for 512 tokens.
        """
        # A token has at least one byte of UTF-8, so short texts need not be tokenized twice. This
        # does not hold for characters: a Hangul syllable is one character and three tokens.
        if len(prefix.encode()) + len(text.encode()) <= self.max_tokens - 2:
            return None
        tokens = self._tokens(prefix + text)
        if not tokens.overflowing:
            return None
        room = self.max_tokens - len(self._tokens(prefix).ids)
        return split_text(
            text,
            _starts([tokens, *tokens.overflowing], len(prefix)),
            max(1, room),
            lambda window: not self._tokens(prefix + window).overflowing,
        )

    def count(self, text: str) -> int:
        """How many tokens a text of any length has, special tokens included."""
        first = self._tokens(text)
        rest = [one for part in first.overflowing for one in part.special_tokens_mask]
        return len(first.ids) + rest.count(0)

    def _tokens(self, text: str) -> Any:
        # encode() would hold the GIL, for 0.3 s if the text is long.
        return self._tokenizer.encode_batch([text])[0]

    def encode(self, text: str, *, alone: bool = False) -> NDArray[np.float32]:
        """A unit vector of one text. A longer text is cut.

        ``alone``: no other text is being embedded. It then runs on two threads, if the model was
        loaded for more than one and two are currently faster.

        Raises:
            ValueError: The model returned no finite vector.
        """
        # Computes no offsets, and releases the GIL, which encode() would hold.
        ids = np.array([self._tokenizer.encode_batch_fast([text])[0].ids], dtype=np.int64)
        feed = {"input_ids": ids}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(ids)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(ids)
        tokens = self._run_alone(feed) if alone else self._session.run(self._outputs, feed)
        vector = _unit_vector(tokens[0][0], mean=self._mean)
        if not np.isfinite(vector).all():
            raise ValueError("the model returned a vector that is not finite")
        return vector

    def _run_alone(self, feed: dict[str, NDArray[np.int64]]) -> Any:
        if self._session_alone is None:
            return self._session.run(self._outputs, feed)
        several = self._choice.several()
        session = self._session_alone if several else self._session
        started = time.perf_counter()
        output = session.run(self._outputs, feed)
        seconds, tokens = time.perf_counter() - started, feed["input_ids"].size
        self._choice.record(several=several, seconds=seconds, tokens=tokens)
        return output


def _starts(tokens: Sequence[Any], skipped: int) -> list[int]:
    """Where each token after the first ``skipped`` characters begins, counted from there."""
    return [
        max(0, start - skipped)
        for part in tokens
        for (start, end), special in zip(part.offsets, part.special_tokens_mask, strict=True)
        if not special and end > skipped
    ]


def _unit_vector(tokens: NDArray[np.floating[Any]], *, mean: bool) -> NDArray[np.float32]:
    """The vector of a text from those of its tokens: of the first one, or their mean."""
    pooled: NDArray[np.floating[Any]] = (
        np.add.reduce(tokens, axis=0, dtype=np.float64) / len(tokens)
        if mean
        else tokens[0].astype(np.float32, copy=False)
    )
    length = np.sqrt(np.add.reduce(pooled * pooled))
    unit: NDArray[np.float32] = (pooled / max(length, _SMALLEST)).astype(np.float32, copy=False)
    return unit
