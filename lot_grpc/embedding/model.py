"""The loaded model: one text in, one unit vector out.

Texts run one by one, never as an ONNX batch. Measured on the int8 model: its activations are
quantized over the whole batch, so a text's vector depended on the rest of its batch (cosine down to
.989 against the text alone, even among texts of equal length), and a batch of 32 mixed texts cost
twice as much per text as running them singly on as many threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.errors import ModelUnavailableError
from lot_grpc.embedding.model_files import ModelFiles
from lot_grpc.embedding.windows import MOST_WINDOWS, Windows, split_text

_CHARACTERS_PER_TOKEN = 32
"""Far more than in any prose or code; longer texts are cut before tokenizing."""

_registry = threading.Lock()


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

    def encode(self, text: str) -> NDArray[np.float32]:
        """A unit vector of one text that is not too long, computed on the calling thread."""


class OnnxEncoder:
    """A model loaded by fastembed. Safe to share between threads."""

    def __init__(self, files: ModelFiles) -> None:
        """Load the model (about 0.2 s) and run it once.

        Raises:
            ModelUnavailableError: The files are not that model, or not a model at all.
        """
        try:
            self._embedding = _load(files)
            self._tokenizer = self._embedding.model.tokenizer
            self.max_tokens = int(self._tokenizer.truncation["max_length"])
            dimensions = len(self.encode("ready"))
        except Exception as error:
            raise ModelUnavailableError(
                f"{files.folder / files.model_file} cannot be loaded: {error}", path=files.folder
            ) from error
        if dimensions != files.card.dimensions:
            raise ModelUnavailableError(
                f"{files.folder / files.model_file} returns {dimensions} dimensions, but "
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

    def encode(self, text: str) -> NDArray[np.float32]:
        """A unit vector of one text, computed on the calling thread. A longer text is cut.

        Raises:
            ValueError: The model returned no finite vector.
        """
        vector = np.array(next(iter(self._embedding.embed([text]))), dtype=np.float32)
        if not np.isfinite(vector).all():
            raise ValueError("the model returned a vector that is not finite")
        return vector


def _starts(tokens: Sequence[Any], skipped: int) -> list[int]:
    """Where each token after the first ``skipped`` characters begins, counted from there."""
    return [
        max(0, start - skipped)
        for part in tokens
        for (start, end), special in zip(part.offsets, part.special_tokens_mask, strict=True)
        if not special and end > skipped
    ]


def _load(files: ModelFiles) -> Any:
    """Load with fastembed's API for custom models: our own name, files from our folder."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"lot-grpc/{files.card.name}/{files.model_file}"
    with _registry:
        if all(known["model"] != name for known in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                model=name,
                pooling=PoolingType[files.card.pooling.upper()],
                normalization=True,
                sources=ModelSource(hf=files.card.name),
                dim=files.card.dimensions,
                model_file=files.model_file,
            )
    # One thread per text: a second did not speed up single texts, and spun on the core that the
    # event loop needs.
    return TextEmbedding(name, specific_model_path=str(files.folder), threads=1)
