"""Where the things of each kind lie: every collection is somewhere."""

from __future__ import annotations

from lot_grpc.domain.change import ResourceKind
from lot_grpc.services.records.changes import WATCHED
from lot_grpc.services.records.collections import collection_specs
from lot_grpc.services.records.resource_kinds import BESIDE, COLLECTIONS, OF_THE_STORE


def test_every_collection_is_of_a_kind_or_beside_or_of_the_store() -> None:
    of_nouns = {name for names in COLLECTIONS.values() for name in names}
    assert of_nouns | {*BESIDE} | {*OF_THE_STORE} == {spec.name for spec in collection_specs(8)}
    assert not of_nouns & {*BESIDE, *OF_THE_STORE}
    assert not {*BESIDE} & {*OF_THE_STORE}


def test_every_kind_is_there_and_has_a_collection_of_its_own() -> None:
    assert list(COLLECTIONS) == list(ResourceKind)
    own = [names[0] for names in COLLECTIONS.values() if names]
    assert len(own) == len(set(own))


def test_what_is_watched_lies_first() -> None:
    for resource_kind, watched in WATCHED.items():
        assert COLLECTIONS[resource_kind][0] == watched.collection
