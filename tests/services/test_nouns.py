"""Where the things of each noun lie: every collection is somewhere."""

from __future__ import annotations

from lot_grpc.domain.change import Noun
from lot_grpc.services.records.changes import WATCHED
from lot_grpc.services.records.collections import collection_specs
from lot_grpc.services.records.nouns import BESIDE, COLLECTIONS, OF_THE_STORE


def test_every_collection_is_of_a_noun_or_beside_or_of_the_store() -> None:
    of_nouns = {name for names in COLLECTIONS.values() for name in names}
    assert of_nouns | {*BESIDE} | {*OF_THE_STORE} == {spec.name for spec in collection_specs(8)}
    assert not of_nouns & {*BESIDE, *OF_THE_STORE}
    assert not {*BESIDE} & {*OF_THE_STORE}


def test_every_noun_is_there_and_has_a_collection_of_its_own() -> None:
    assert list(COLLECTIONS) == list(Noun)
    own = [names[0] for names in COLLECTIONS.values() if names]
    assert len(own) == len(set(own))


def test_what_is_watched_lies_first() -> None:
    for noun, watched in WATCHED.items():
        assert COLLECTIONS[noun][0] == watched.collection
