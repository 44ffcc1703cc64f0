"""Names of principals in what is stored: who recalled, and who reviewed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lot_grpc.server.guards import Guards
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.keys import Keys, principal
from tests.server.service import Lot, serving
from tests.server.test_admin_reviews import FIELDS, KINDS, update
from tests.server.test_admin_reviews import store as stored
from tests.server.transfers import exported, imported, records_of
from tests.server.wire import failure

HERE, THERE = "team-a", "team-b"
ONE, TWO = "one", "two"


def authenticating(*store: Any, **options: Any) -> Any:
    keys = Keys(*(principal(who, f"admin {HERE}", f"admin {THERE}") for who in (ONE, TWO)))
    return serving(*store, guards=Guards(authenticator=keys), **options)


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    async with authenticating() as service:
        yield service


async def test_retrievals_are_listed_by_who_made_them(lot):
    made: dict[str, list[str]] = {}
    for one in (ONE, TWO, ONE):
        found = await lot.on(HERE).by(one).memories.SearchMemories(query="the port")
        made.setdefault(one, []).insert(0, found.retrieval_id)

    async def listed(name: str) -> list[str]:
        page = await lot.on(HERE).by(TWO).learning.ListRetrievals(filter={"principal": name})
        return [one.retrieval_id for one in page.retrievals]

    assert {name: await listed(name) for name in (ONE, TWO)} == made
    assert await listed("on") == []
    assert sorted(await listed("")) == sorted([*made[ONE], *made[TWO]])
    too_long = lot.on(HERE).by(ONE).learning.ListRetrievals(filter={"principal": "x" * 1025})
    assert list((await failure(too_long)).fields) == ["filter.principal"]


@pytest.mark.parametrize("kind", ["memory", "pattern", "error_solution"])
async def test_a_review_says_who_set_it_until_a_write_undoes_it(lot, kind):
    here = lot.on(HERE).by(ONE)
    await here.admin.UpdateNamespacePolicy(policy={"review_origins": ["ORIGIN_KIND_MODEL"]})
    made = await stored(here, kind, origin={"kind": "ORIGIN_KIND_MODEL"})
    assert (made.review.state, made.review.principal) == (1, "")

    async def review(who: str, state: str, note: str = "") -> Any:
        reviewed = (
            await lot.on(HERE)
            .by(who)
            .admin.ReviewRecords(
                resource_kind=KINDS[kind], items=[{"id": "x"}], state=state, note=note
            )
        )
        [result] = reviewed.results
        [message] = [
            getattr(one, kind) for one in records_of(await exported(here)) if one.HasField(kind)
        ]
        assert message.review == result.review
        return result

    approved = await review(ONE, "REVIEW_STATE_APPROVED")
    assert (approved.changed, approved.review.principal) == (True, ONE)
    again = await review(TWO, "REVIEW_STATE_APPROVED")
    assert (again.changed, again.review) == (False, approved.review)
    noted = await review(TWO, "REVIEW_STATE_APPROVED", "checked")
    assert (noted.changed, noted.review.principal) == (True, TWO)
    messages = await exported(here)
    await imported(lot.on(THERE).by(ONE), messages)
    there = [getattr(one, kind) for one in records_of(await exported(lot.on(THERE).by(ONE)))]
    assert [one.review for one in there if one.review.state] == [noted.review]
    rewritten = await update(
        here, kind, next(iter(FIELDS[kind])), **{next(iter(FIELDS[kind])): "another text"}
    )
    assert (rewritten.review.state, rewritten.review.principal) == (1, "")


async def test_a_review_without_authentication_names_nobody_also_after_one_that_did():
    clock = FixedClock()
    store = InMemoryStore(clock)
    review = {"resource_kind": KINDS["memory"], "items": [{"id": "x"}]}
    rejected = {**review, "state": "REVIEW_STATE_REJECTED"}
    async with authenticating(store, clock=clock) as lot:
        here = lot.on(HERE).by(ONE)
        await stored(here, "memory")
        await here.admin.ReviewRecords(**rejected)
        async with serving(store, clock=clock) as plain:
            plain = plain.on(HERE)
            found = await plain.memories.GetMemory(memory_id="x")
            assert found.memory.review.principal == ONE
            [reviewed] = (await plain.admin.ReviewRecords(**rejected, note="again")).results
            assert reviewed.changed
            found = await plain.memories.GetMemory(memory_id="x")
            assert found.memory.review == reviewed.review
            assert reviewed.review.principal == ""
