"""BM25 weights of documents and queries; the store multiplies by the inverse document frequency.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with one
change: a term's weight is divided by a power of the text's length, where BM25 has the ratio to the
average length within the saturation. Weights are written once while the average changes, and a
power needs no average. Tasks of twenty words and abstracts of two hundred share a collection; this
way a term saturates alike in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from lot_grpc.domain.fusion import NO_OVERLAP, Overlap
from lot_grpc.lexical.terms import FUNCTION_TERMS, TERMS, terms_of
from lot_grpc.ports import SparseVector

TOKENIZER: Final = f"{TERMS}/bm25-2"
"""Name and version of the stored form: the terms, their numbers and their weights."""

K1: Final = 1.5
LENGTH_POWER: Final = 0.35
SHORTEST: Final = 10
"""Minimum length in words; shorter texts count as this long. "Thanks, Tom!" does not say more about
Tom than a sentence does."""

MOST_QUERY_TERMS: Final = 512
"""Maximum number of terms of a query. If there are more, those with a digit or a symbol come first
(codes, paths, versions), then words, then function words."""

MOST_QUERY_CHARACTERS: Final = 16_384
"""Characters of a query that are read; of a longer one, half from each end, since a traceback ends
with what it is about."""

OVERLAP_CHARACTERS: Final = 4_000


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as terms. ``cut``: it has more terms than are used.

    ``vector`` has the content words, without the function words. ``form`` has both: "cheapest ...
    on this site" is a way of asking, and among texts phrased like that it is what matters. It is
    None if there is no difference; a query of only function words has them in ``vector``.
    """

    vector: SparseVector
    terms: frozenset[str]
    telling: frozenset[str]
    cut: bool = False
    form: SparseVector | None = None

    def overlap(self, text: str) -> Overlap:
        """What the query and a text have in common; nothing for a query without terms.

        Only the first ``OVERLAP_CHARACTERS`` of a text are compared.
        """
        found = terms_of(text[:OVERLAP_CHARACTERS]).counts.keys()
        shared = self.terms & found
        if not shared:
            return NO_OVERLAP
        return Overlap(
            2 * len(shared) / (len(self.terms) + len(found)),
            len(shared & self.telling),
            complete=self.telling <= found,
        )


def document_vector(text: str, pause: Callable[[], object] = lambda: None) -> SparseVector:
    """The weights of a text to store. ``pause`` is called between the pieces of a long text."""
    terms = terms_of(text, pause)
    divisor = max(1.0, terms.length / SHORTEST) ** LENGTH_POWER
    weights: dict[int, float] = {}
    for term, count in terms.counts.items():
        number = term_number(term)
        weights[number] = weights.get(number, 0.0) + count * (K1 + 1) / (count + K1) / divisor
    return SparseVector(list(weights), list(weights.values()))


@lru_cache(maxsize=8)
def lexical_query(text: str) -> LexicalQuery:
    """The weights of a search text. One without a word or a symbol has no terms.

    The last few are cached: a search of several kinds uses the same text for each.
    """
    found = list(terms_of(_both_ends(text)).counts)
    looked_up = found
    if len(found) > MOST_QUERY_TERMS:
        looked_up = sorted(found, key=_place)[:MOST_QUERY_TERMS]
    cut = len(found) > len(looked_up) or len(text) > MOST_QUERY_CHARACTERS
    naming = [term for term in looked_up if term not in FUNCTION_TERMS] or looked_up
    form = _counted_once(looked_up) if len(naming) < len(looked_up) else None
    terms, telling = frozenset(looked_up), frozenset(naming)
    return LexicalQuery(_counted_once(naming), terms, telling, cut, form)


def _counted_once(terms: Sequence[str]) -> SparseVector:
    weights: dict[int, float] = {}
    for term in terms:
        number = term_number(term)
        weights[number] = weights.get(number, 0.0) + 1.0
    return SparseVector(list(weights), list(weights.values()))


def _both_ends(text: str) -> str:
    if len(text) <= MOST_QUERY_CHARACTERS:
        return text
    half = MOST_QUERY_CHARACTERS // 2
    return f"{text[:half]}\n{text[-half:]}"


def _place(term: str) -> int:
    if term in FUNCTION_TERMS:
        return 2
    return 1 if term.isalpha() else 0


@lru_cache(maxsize=65_536)
def term_number(term: str) -> int:
    """Its index in a sparse vector: 32 bits of its BLAKE2b hash. Terms that collide add up."""
    return int.from_bytes(blake2b(term.encode(), digest_size=4).digest(), "big")
