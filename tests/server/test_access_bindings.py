"""What a call gives belongs to who got it: tokens, cursors, request ids, work in progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from lot_grpc.kernel.idempotency import REQUESTS
from lot_grpc.server.guards import Guards
from tests.server.doubles import Slow
from tests.server.examples import EXAMPLES, example, method_of, prepare
from tests.server.keys import Keys, metadata_of, principal
from tests.server.service import Lot, serving
from tests.server.test_access_leaks import fill
from tests.server.test_access_matrix import attempt
from tests.server.transfers import exported, records_of
from tests.server.wire import Wire, failure, save, until, wire

HERE, THERE = "team-a", "team-b"
ONE, TWO = "one", "two"
"""Two principals that may do the same, in both namespaces."""

PLACES = [(ONE, THERE), (TWO, HERE), (TWO, THERE)]
"""Where what the first got in the first namespace is not valid."""


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    grants = (f"admin {HERE}", f"admin {THERE}", "reader *")
    async with serving(
        guards=Guards(authenticator=Keys(principal(ONE, *grants), principal(TWO, *grants)))
    ) as service:
        yield service


# --- page tokens ----------------------------------------------------------------------------------

PAGED: Mapping[str, Mapping[str, Any]] = {
    "AdminService.ListNamespaces": {},
    "EpisodeService.ListEpisodeEvents": {"episode_id": "a1-id"},
    "EpisodeService.ListEpisodes": {},
    "LearningService.ListDecisions": {},
    "LearningService.ListLearningEvents": {},
    "LearningService.ListRetrievals": {},
    "MemoryService.ListErrorSolutions": {},
    "MemoryService.ListMemories": {},
    "MemoryService.ListPreferences": {},
    "PatternService.ListOutcomes": {"pattern_id": "a1-id"},
    "PatternService.ListPatterns": {},
}


def test_every_list_is_tried():
    with_tokens = {
        name for name in EXAMPLES if "page_token" in method_of(name).input_type.fields_by_name
    }
    assert with_tokens == set(PAGED)


@pytest.mark.parametrize("name", PAGED)
async def test_a_page_token_is_valid_only_for_who_got_it_and_there(lot, name):
    for namespace in (HERE, THERE):
        await fill(lot.on(namespace).by(ONE))
    kind = method_of(name).input_type._concrete_class

    async def page(key: str, namespace: str, token: str = "") -> Any:
        request = kind(namespace=namespace, page_size=1, page_token=token, **PAGED[name])
        return await attempt(lot, name, request, key)

    answer = method_of(name).output_type._concrete_class
    token = answer.FromString((await page(ONE, HERE)).raw).next_page_token
    assert token
    for key, namespace in PLACES:
        assert (await page(key, namespace, token)).reason == "PAGE_TOKEN_MISMATCH"
    assert (await page(ONE, HERE, token)).reason == ""


# --- cursors --------------------------------------------------------------------------------------


async def test_a_cursor_of_the_feed_is_valid_only_for_who_got_it_and_there(lot):
    call = lot.on(HERE).by(ONE).memories.WatchChanges()
    cursor = (await call.read()).cursor
    call.cancel()
    for key, namespace in PLACES:
        call = lot.on(namespace).by(key).memories.WatchChanges(after_cursor=cursor)
        assert (await failure(call.read())).fields == {"after_cursor": "cursor.other_feed"}
    call = lot.on(HERE).by(ONE).memories.WatchChanges(after_cursor=cursor)
    assert (await call.read()).cursor
    call.cancel()


@pytest.mark.parametrize("whole", [False, True], ids=["a namespace", "all namespaces"])
async def test_a_cursor_of_an_export_is_valid_only_for_who_got_it_and_there(lot, whole):
    await fill(lot.on(HERE).by(ONE))
    messages = await exported(lot.on(HERE).by(ONE), all_namespaces=whole)
    cursor = messages[-1].cursor
    # The namespace says nothing if all are exported.
    for key, namespace in [(TWO, HERE)] if whole else PLACES:
        call = lot.on(namespace).by(key).admin.Export(after_cursor=cursor, all_namespaces=whole)
        assert (await failure(call.read())).fields == {"after_cursor": "cursor.other_export"}
    rest = await exported(lot.on(HERE).by(ONE), after_cursor=cursor, all_namespaces=whole)
    assert records_of(rest) == []


# --- request ids ----------------------------------------------------------------------------------

NAMED = [
    name for name in sorted(EXAMPLES) if "request_id" in method_of(name).input_type.fields_by_name
]
DONE = {"EPISODE_ENDED", "OUTCOME_CORRECTED"}
"""Why the second cannot do what the first did."""


async def requests_in(lot: Lot, namespace: str) -> set[str]:
    """The requests that are recorded in a namespace."""
    assert lot.own_services is not None
    store = lot.own_services.runtime.store
    found = await store.scroll(REQUESTS, namespace, (), limit=1000)
    return {one.id for one in found if one.payload.get("request_id") == "r-1"}


@pytest.mark.parametrize("name", NAMED)
async def test_a_request_id_is_its_principals(lot, name):
    await prepare(lot.on(HERE).by(ONE))

    async def ask(key: str) -> Any:
        request = example(name, HERE)
        request.request_id = "r-1"
        return await attempt(lot, name, request, key)

    first = await ask(ONE)
    assert first.reason == ""
    [own] = await requests_in(lot, HERE)
    assert (await ask(ONE)).reason == ""
    assert await requests_in(lot, HERE) == {own}
    other = await ask(TWO)
    assert other.reason in DONE or len(await requests_in(lot, HERE)) == 2


async def test_a_request_id_of_a_batch_is_its_principals(lot):
    for key, content in ((ONE, "a"), (TWO, "b"), (ONE, "a")):
        done = (
            await lot.on(HERE)
            .by(key)
            .memories.BatchCreateMemories(
                items=[{"memory": {"content": content}, "request_id": "r-1"}]
            )
        )
        assert not done.failed_count
    assert len(await requests_in(lot, HERE)) == 2


async def test_a_request_id_with_other_content_says_so_only_to_its_principal(lot):
    mine, other = (lot.on(HERE).by(key).memories for key in (ONE, TWO))
    made = await mine.CreateMemory(memory={"content": "a"}, request_id="r-1")
    failed = await failure(mine.CreateMemory(memory={"content": "b"}, request_id="r-1"))
    assert failed.reason == "REQUEST_ID_REUSED"
    theirs = await other.CreateMemory(memory={"content": "b"}, request_id="r-1")
    assert theirs.created
    assert theirs.memory.memory_id != made.memory.memory_id


# --- etags ----------------------------------------------------------------------------------------


async def test_an_etag_is_of_one_namespace(lot):
    """Both records have the same ids, times and revisions: the clock stands still."""
    for namespace in (HERE, THERE):
        await prepare(lot.on(namespace).by(ONE))
        await lot.on(namespace).by(ONE).admin.UpdateNamespacePolicy(policy={"max_patterns": 9})
    here, there = lot.on(HERE).by(ONE), lot.on(THERE).by(ONE)
    etags = {
        "pattern": lambda lot: lot.patterns.GetPattern(pattern_id="p"),
        "memory": lambda lot: lot.memories.GetMemory(memory_id="m"),
        "error_solution": lambda lot: lot.memories.GetErrorSolution(error_solution_id="s"),
        "episode": lambda lot: lot.episodes.GetEpisode(episode_id="e"),
        "decision": lambda lot: lot.learning.GetDecision(decision_id="d"),
        "preference": lambda lot: lot.memories.GetPreference(key="k"),
        "policy": lambda lot: lot.admin.GetNamespacePolicy(),
    }
    for field, ask in etags.items():
        one, other = getattr(await ask(here), field), getattr(await ask(there), field)
        assert one.etag
        assert one.etag != other.etag
    stale = (await here.patterns.GetPattern(pattern_id="p")).pattern.etag
    failed = await failure(there.patterns.DeletePattern(pattern_id="p", etag=stale))
    assert failed.reason == "ETAG_MISMATCH"


async def test_what_a_retrieval_showed_has_the_etag_of_the_record(lot):
    here = lot.on(HERE).by(ONE)
    made = await here.memories.CreateMemory(memory={"content": "the port is 8080"})
    found = await here.memories.SearchMemories(query="the port")
    stored = await here.learning.GetRetrieval(retrieval_id=found.retrieval_id)
    assert [one.etag for one in stored.retrieval.items] == [made.memory.etag]


# --- retrievals -----------------------------------------------------------------------------------


async def test_a_retrieval_says_who_made_it_and_another_may_report_its_outcome(lot):
    here = lot.on(HERE).by(ONE)
    await here.memories.CreateMemory(memory={"content": "the port is 8080"}, memory_id="m")
    found = await here.memories.SearchMemories(query="the port")
    await (
        lot.on(HERE)
        .by(TWO)
        .patterns.RecordOutcome(retrieval_id=found.retrieval_id, memory_ids=["m"], outcome=1)
    )
    stored = await here.learning.GetRetrieval(retrieval_id=found.retrieval_id)
    assert stored.retrieval.principal == ONE
    assert len(stored.retrieval.outcomes) == 1
    [kept] = [
        one.retrieval for one in records_of(await exported(here)) if one.HasField("retrieval")
    ]
    assert kept.principal == ONE
    missing = lot.on(THERE).by(ONE).learning.GetRetrieval(retrieval_id=found.retrieval_id)
    assert (await failure(missing)).reason == "RETRIEVAL_NOT_FOUND"


# --- work in progress -----------------------------------------------------------------------------


def _at_work(it: Wire) -> int:
    """How many writes have begun their work, or joined that of another."""
    return sum(call.work is not None for call in it.server._inflight._calls)


@pytest.mark.parametrize("request_id", ["", "r-1"])
async def test_equal_requests_of_two_principals_are_not_joined(request_id):
    servicer = Slow()
    keys = Keys(principal(ONE, "admin *"), principal(TWO, "admin *"))
    async with wire(servicer, guards=Guards(authenticator=keys)) as it:
        request = save()
        request.request_id = request_id

        def asked(key: str) -> Any:
            return it.patterns.SavePattern(request, metadata=metadata_of(key))

        calls = [asked(key) for key in (ONE, TWO, ONE, TWO)]
        await until(lambda: _at_work(it) == 4)
        servicer.go.set()
        await asyncio.gather(*calls)
        assert servicer.begun == (2 if request_id else 4)


async def test_an_equal_request_joins_what_another_principal_left_only_if_it_is_its_own():
    servicer = Slow()
    keys = Keys(principal(ONE, "admin *"), principal(TWO, "admin *"))
    async with wire(servicer, guards=Guards(authenticator=keys)) as it:
        first = it.patterns.SavePattern(save(), metadata=metadata_of(ONE))
        await until(lambda: servicer.begun == 1)
        first.cancel()
        await until(lambda: it.log)
        calls = [it.patterns.SavePattern(save(), metadata=metadata_of(key)) for key in (TWO, ONE)]
        await until(lambda: _at_work(it) == 3)
        servicer.go.set()
        await asyncio.gather(*calls)
        assert servicer.begun == 2
