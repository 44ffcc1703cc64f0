"""The bounded cache of vectors."""

from __future__ import annotations

from contextvars import copy_context

import numpy as np

from lot_grpc.domain.access import ANONYMOUS, Principal
from lot_grpc.embedding.cache import VectorCache, key_of, pair_key_of
from lot_grpc.embedding.model import Encoded
from lot_grpc.work import begin_work, work_for

ONE = Encoded(np.array([1.0], dtype=np.float32), truncated=False)


def test_the_vector_unused_for_longest_goes_first():
    cache = VectorCache(2)
    a, b, c = (key_of("query", text) for text in "abc")
    cache.put(a, ONE)
    cache.put(b, ONE)
    assert cache.get(a) is ONE
    cache.put(c, ONE)
    assert cache.get(b) is None
    assert cache.get(a) is ONE
    assert len(cache) == 2


def test_no_entries_keep_nothing():
    cache = VectorCache(0)
    cache.put(key_of("query", "a"), ONE)
    assert len(cache) == 0
    assert cache.get(key_of("query", "a")) is None


def test_queries_and_documents_have_their_own_keys():
    assert key_of("query", "text") != key_of("document", "text")


def test_long_texts_that_differ_only_at_the_end_have_their_own_short_keys():
    one, other = key_of("query", "a" * 9999 + "b"), key_of("query", "a" * 9999 + "c")
    assert one != other
    assert len(one[-1]) == 32


def test_a_long_text_and_the_text_of_its_hash_are_apart():
    *_, digest = key_of("query", "a" * 9999)
    assert isinstance(digest, bytes)
    assert key_of("query", digest.decode("latin-1")) != key_of("query", "a" * 9999)


def test_callers_of_another_namespace_have_other_keys():
    def keys(principal: Principal, namespace: str) -> set[object]:
        work_for(principal, namespace)
        return {key_of("query", "a"), key_of("query", "a" * 9999), pair_key_of("a", "b")}

    known = Principal("key:k", "k", ())

    def compare() -> None:
        everyone = [keys(known, "n"), keys(known, "m"), keys(known, ""), keys(ANONYMOUS, "")]
        begin_work(background=True)
        assert len(set().union(*everyone)) == 12
        assert {key_of("query", "a")} < everyone[-1]
        assert keys(Principal("key:l", "l", ()), "n") == everyone[0]

    copy_context().run(compare)  # whom work is done for must not leak into other tests
