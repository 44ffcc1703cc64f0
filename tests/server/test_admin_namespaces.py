"""ListNamespaces and ClearNamespace on the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import change_pb2
from lot_grpc.server.guards import Guards
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.keys import Keys, principal
from tests.server.patterns import saved
from tests.server.service import Lot, serving
from tests.server.wire import failure

CLEARED = change_pb2.CHANGE_TYPE_CLEARED


async def listed(lot: Lot, page_size: int = 1000) -> dict[str, Any]:
    """All namespaces by name, over all pages."""
    found: list[Any] = []
    token = ""
    while True:
        page = await lot.admin.ListNamespaces(page_size=page_size, page_token=token)
        found += page.namespaces
        token = page.next_page_token
        if not token:
            assert [one.namespace for one in found] == sorted({one.namespace for one in found})
            return {one.namespace: one for one in found}


async def clear(lot: Lot, **named: Any) -> Any:
    return await lot.admin.ClearNamespace(confirm_namespace=lot.namespace, **named)


async def test_namespaces_are_listed_by_name_with_what_they_hold(lot):
    names = [f"{lot.namespace}-{letter}" for letter in "cab"]
    for name in names:
        await saved(lot.on(name), "x")
    await lot.on(names[0]).memories.CreateMemory(memory={"content": "c"})
    await lot.on(names[1]).episodes.RecordEpisode(
        episode={"task": "t", "status": 2}, events=[{"event_type": "x"}] * 3
    )
    found = await listed(lot)
    assert [name for name in found if name.startswith(lot.namespace)] == sorted(names)
    assert dict(found[names[0]].record_counts) == {"PATTERN": 1, "MEMORY": 1}
    assert dict(found[names[1]].record_counts) == {"PATTERN": 1, "EPISODE": 1, "EPISODE_EVENT": 3}
    assert not found[names[0]].clearing
    assert await listed(lot, page_size=1) == found
    assert await listed(lot, page_size=2) == found


async def test_a_page_is_ten_unless_asked_for(lot):
    for number in range(11):
        await saved(lot.on(f"{lot.namespace}-{number:02}"), "x")
    assert len((await lot.admin.ListNamespaces()).namespaces) == 10
    failed = await failure(lot.admin.ListNamespaces(page_token="e30"))
    assert failed.reason == "PAGE_TOKEN_MISMATCH"


async def test_a_namespace_that_holds_nothing_is_not_listed(lot):
    await saved(lot, "x")
    assert lot.namespace in await listed(lot)
    answer = await clear(lot)
    assert (dict(answer.deleted_counts), answer.deleted_count) == ({"PATTERN": 1}, 1)
    assert lot.namespace not in await listed(lot)


async def test_the_name_must_be_repeated(lot):
    await saved(lot, "x")
    for given in ("", "default", f"{lot.namespace}x"):
        failed = await failure(lot.admin.ClearNamespace(confirm_namespace=given))
        assert failed.reason == "REQUEST_INVALID"
    failed = await failure(lot.on("").admin.ClearNamespace(confirm_namespace="other"))
    assert failed.reason == "REQUEST_INVALID"
    answer = await lot.on("").admin.ClearNamespace(confirm_namespace="default", dry_run=True)
    assert answer.deleted_count >= 0
    assert (await lot.patterns.ListPatterns()).patterns


async def test_another_than_the_one_that_was_confirmed_is_not_cleared():
    """Without a namespace, a request goes to the one of the key, and not to `default`."""
    guards = Guards(authenticator=Keys(principal("a", "admin team-a", "admin default")))
    async with serving(guards=guards) as service:
        own = service.by("a").on("")
        created = await own.memories.CreateMemory(memory={"content": "c"})
        assert created.memory.namespace == "team-a"
        failed = await failure(own.admin.ClearNamespace(confirm_namespace="default"))
        assert failed.fields == {"confirm_namespace": "clear_namespace.confirm"}
        assert (await own.memories.ListMemories()).memories


async def test_a_dry_run_counts_and_some_kinds_are_cleared_alone(lot):
    await saved(lot, "x")
    for content in "ab":
        await lot.memories.CreateMemory(memory={"content": content})
    told = await clear(lot, dry_run=True)
    assert (dict(told.deleted_counts), told.deleted_count) == ({"PATTERN": 1, "MEMORY": 2}, 3)
    answer = await clear(lot, resource_kinds=["RESOURCE_KIND_MEMORY"])
    assert dict(answer.deleted_counts) == {"MEMORY": 2}
    assert (await lot.patterns.ListPatterns()).patterns
    assert dict((await clear(lot)).deleted_counts) == {"PATTERN": 1}
    assert (await clear(lot)).deleted_count == 0


@pytest.mark.parametrize("resource_kind", ["RESOURCE_KIND_OUTCOME", "RESOURCE_KIND_EPISODE_EVENT"])
async def test_a_log_is_refused_by_itself(lot, resource_kind):
    for dry_run in (True, False):
        failed = await failure(
            clear(lot, resource_kinds=["RESOURCE_KIND_PATTERN", resource_kind], dry_run=dry_run)
        )
        assert failed.fields == {"resource_kinds[1]": "resource_kind.clearable"}
        assert "cannot be cleared alone" in failed.message


async def test_a_watcher_is_told_of_all_kinds_or_of_one(lot):
    await saved(lot, "x")
    stream = lot.memories.WatchChanges(types=["CHANGE_TYPE_CLEARED"])
    await stream.read()
    told: list[Any] = []
    for resource_kinds in ([], ["RESOURCE_KIND_MEMORY"]):
        await clear(lot, resource_kinds=resource_kinds)
        async with asyncio.timeout(20):
            before = len(told)
            while len(told) == before:
                told += (await stream.read()).change_events
    stream.cancel()
    assert [(one.type, one.resource_kind, one.id) for one in told] == [
        (CLEARED, 0, ""),
        (CLEARED, 1, ""),
    ]
    assert told[0].namespace == lot.namespace
    assert told[0].cursor
    assert told[0].WhichOneof("payload") is None


async def test_an_open_stream_of_events_ends_with_a_clear_reason(lot):
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    stream = lot.episodes.RecordEvents()
    await stream.write(_opening(lot))
    await stream.read()
    await clear(lot)
    failed = await failure(stream.read())
    assert failed.reason == "NAMESPACE_CLEARING"
    assert "RetryInfo" in failed.details
    gone = await failure(lot.episodes.GetEpisode(episode_id="e"))
    assert gone.reason == "EPISODE_NOT_FOUND"


def _opening(lot: Lot) -> Any:
    from lot_grpc.pb.lot.v1 import episode_service_pb2

    return episode_service_pb2.RecordEventsRequest(namespace=lot.namespace, episode_id="e")


async def test_writes_are_refused_while_it_is_at_work_and_it_is_listed_so():
    class Held(InMemoryStore):
        """A store whose first delete waits."""

        hold = asyncio.Event()
        held = asyncio.Event()

        async def delete(self, *given: Any, **named: Any) -> int:
            self.held.set()
            await self.hold.wait()
            return await super().delete(*given, **named)

    clock = FixedClock()
    store = Held(clock)
    async with serving(store, clock=clock) as lot:
        await saved(lot, "x")
        work = asyncio.ensure_future(clear(lot))
        await store.held.wait()
        failed = await failure(lot.memories.CreateMemory(memory={"content": "c"}))
        assert (failed.reason, failed.metadata) == (
            "NAMESPACE_CLEARING",
            {"namespace": lot.namespace},
        )
        assert "RetryInfo" in failed.details
        assert (await failure(clear(lot))).reason == "NAMESPACE_CLEARING"
        assert (await clear(lot, dry_run=True)).deleted_count == 1
        assert (await listed(lot))[lot.namespace].clearing
        await lot.on("other").memories.CreateMemory(memory={"content": "c"})
        store.hold.set()
        assert (await work).deleted_count == 1
        await lot.memories.CreateMemory(memory={"content": "c"})
        assert not (await listed(lot))[lot.namespace].clearing
