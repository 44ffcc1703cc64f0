"""Imports that meet what is there, another model, or are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.service import Lot, serving
from tests.server.transfers import COUNTS, DAY, bare, exported, fill, imported, records_of
from tests.server.wire import failure

# --- conflicts --------------------------------------------------------------------------------


async def two_of_one_id(lot: Lot) -> Lot:
    """Pattern ``p`` here and, of other content and history, in another namespace."""
    other = lot.on(f"{lot.namespace}-other")
    for one, task, uses in ((lot, "deploy the site", 3), (other, "brew coffee", 1)):
        await one.patterns.SavePattern(pattern={"task": task}, pattern_id="p")
        for _ in range(uses):
            await one.patterns.RecordOutcome(pattern_ids=["p"], outcome=1, query=f"do {task}")
        await one.patterns.RecordPatternFeedback(pattern_id="p", helpful=uses == 3)
    return other


async def test_an_id_that_is_taken_ends_the_import(lot: Lot):
    other = await two_of_one_id(lot)
    before = bare(await exported(other))
    messages = await exported(lot)
    request = pb.ImportRequest(
        namespace=other.namespace, header=messages[0].header, records=records_of(messages)
    )
    failed = await failure(other.admin.Import(iter([request])).read())
    assert failed.reason == "IMPORT_CONFLICT"
    assert failed.metadata == {"namespace": other.namespace, "resource_kind": "pattern", "id": "p"}
    assert "records before it are stored" in failed.message
    assert bare(await exported(other)) == before
    request.dry_run = True
    failed = await failure(other.admin.Import(iter([request])).read())
    assert "nothing was stored" in failed.message


async def test_what_hangs_on_a_skipped_thing_is_skipped_with_it(lot: Lot):
    other = await two_of_one_id(lot)
    before = bare(await exported(other))
    messages = await exported(lot)
    ack = await imported(other, messages, conflict_policy=pb.IMPORT_CONFLICT_POLICY_SKIP)
    assert ack.skipped_count == len(records_of(messages))
    assert bare(await exported(other)) == before


async def test_what_hangs_on_a_replaced_thing_goes_with_it(lot: Lot):
    other = await two_of_one_id(lot)
    messages = await exported(lot)
    ack = await imported(other, messages, conflict_policy=pb.IMPORT_CONFLICT_POLICY_OVERWRITE)
    assert ack.imported_count == len(records_of(messages))
    assert bare(await exported(other)) == bare(messages)
    found = await other.patterns.RecallPatterns(query="deploy the site", min_similarity=0.9)
    assert [hit.pattern.pattern_id for hit in found.hits] == ["p"]


async def test_everything_is_replaced_by_what_it_was(lot: Lot):
    """All kinds: an export, then more of everything, then the export again."""
    await fill(lot)
    messages = await exported(lot)
    await lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=2, query="how to deploy")
    await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=False)
    await lot.memories.RecordErrorSolutionOutcome(error_solution_id="s", outcome=2)
    await lot.memories.PutPreference(key="theme", value={"string_value": "blue"})
    await lot.memories.PutSessionValue(session_id="c", key="l", value={"number_value": 2})
    await lot.episodes.RecordEvent(episode_id="r", event={"event_type": "late"})
    await lot.episodes.EndEpisode(episode_id="r", status="EPISODE_STATUS_FAILED")
    await lot.learning.RecordDecisionOutcome(decision_id="d", outcome=2)
    await lot.learning.RecordSteps(steps=[{"state": {"task_type": "t"}, "action": "a"}])
    await lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 7})
    assert bare(await exported(lot)) != bare(messages)
    await imported(lot, messages, conflict_policy=pb.IMPORT_CONFLICT_POLICY_OVERWRITE)
    assert bare(await exported(lot)) == bare(messages)


async def test_an_episode_that_is_being_recorded_is_not_replaced(lot: Lot):
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    messages = await exported(lot)
    await lot.episodes.EndEpisode(episode_id="e", status="EPISODE_STATUS_FAILED")
    ended = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, messages)
    stream = lot.episodes.RecordEvents()
    from lot_grpc.pb.lot.v1 import episode_service_pb2 as episode_pb

    await stream.write(episode_pb.RecordEventsRequest(namespace=other.namespace, episode_id="e"))
    await stream.read()
    first = pb.ImportRequest(
        namespace=other.namespace,
        header=ended[0].header,
        records=records_of(ended),
        conflict_policy=pb.IMPORT_CONFLICT_POLICY_OVERWRITE,
    )
    failed = await failure(other.admin.Import(iter([first])).read())
    assert failed.reason == "EPISODE_STREAM_OPEN"
    await stream.done_writing()


async def test_a_dry_run_of_an_import_stores_nothing(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    ack = await imported(other, messages, dry_run=True)
    assert dict(ack.imported_counts) == COUNTS
    assert records_of(await exported(other)) == []


async def test_what_has_expired_is_skipped(lot: Lot):
    await fill(lot)
    messages = await exported(lot, resource_kinds=[resource_kind_pb2.RESOURCE_KIND_MEMORY])
    lot.clock.advance(2 * DAY)
    other = lot.on(f"{lot.namespace}-other")
    ack = await imported(other, messages)
    assert (ack.imported_count, ack.skipped_count) == (1, 1)


# --- another model ----------------------------------------------------------------------------


class CountingEmbedder(HashingEmbedder):
    """An embedder that says what it was asked."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return await super().embed_documents(texts)

    async def embed_query(self, text: str) -> Any:
        self.texts.append(text)
        return await super().embed_query(text)


async def test_vectors_that_come_along_spare_the_model(lot: Lot):
    await fill(lot)
    messages = await exported(lot, include_vectors=True)
    embedder = CountingEmbedder()
    async with serving(embedder=embedder) as empty:
        await imported(empty, messages)
        assert embedder.texts == []
        again = await exported(empty, include_vectors=True)
        assert bare(again) == bare(messages)
        found = await empty.patterns.RecallPatterns(query="deploy the site")
        assert found.hits[0].pattern.pattern_id == "q"  # which supersedes p


async def test_a_store_of_another_model_embeds_anew(lot: Lot):
    await fill(lot)
    for vectors in (True, False):
        messages = await exported(lot, include_vectors=vectors)
        clock = FixedClock()
        embedder = CountingEmbedder(48)
        async with serving(InMemoryStore(clock), embedder, clock=clock) as other:
            await imported(other, messages)
            assert embedder.texts
            assert bare(await exported(other)) == bare(await exported(lot))
            found = await other.patterns.RecallPatterns(query="deploy the site")
            assert found.hits[0].pattern.pattern_id == "q"  # which supersedes p
            found = await other.memories.SearchMemories(query="which port")
            assert "m" in {hit.memory.memory_id for hit in found.hits}


# --- what is refused --------------------------------------------------------------------------


def header(**changed: Any) -> pb.ExportHeader:
    return pb.ExportHeader(**{"format_version": 1, **changed})


async def refused(lot: Lot, *requests: pb.ImportRequest) -> Any:
    call = lot.admin.Import(iter(requests), timeout=30)
    for _ in requests[1:]:
        await call.read()
    return await failure(call.read())


async def test_an_export_of_a_later_version_is_refused(lot: Lot):
    later = header(format_version=2, server_version="9.0")
    failed = await refused(lot, pb.ImportRequest(header=later))
    assert failed.reason == "IMPORT_FORMAT_TOO_NEW"
    assert failed.metadata == {
        "given": "format 2", "supported": "format 1", "server_version": "9.0"
    }  # fmt: skip
    failed = await refused(lot, pb.ImportRequest(header=header(schema_version=1000)))
    assert failed.metadata["given"] == "schema 1000"


async def test_an_import_is_opened_once(lot: Lot):
    failed = await refused(lot, pb.ImportRequest())
    assert failed.fields == {"header": "required"}
    first = pb.ImportRequest(header=header())
    for second in (first, pb.ImportRequest(namespace="x"), pb.ImportRequest(dry_run=True)):
        assert (await refused(lot, first, second)).reason == "STREAM_NOT_OPENED"


async def test_a_broken_record_is_named(lot: Lot):
    await lot.patterns.SavePattern(pattern={"task": "deploy"}, pattern_id="p")
    messages = await exported(lot)
    (good,) = records_of(messages)
    before = bare(messages)

    def broken(change: Any) -> pb.ImportRequest:
        record = pb.ExportRecord()
        record.CopyFrom(good)
        change(record)
        return pb.ImportRequest(
            header=messages[0].header, namespace=lot.namespace, records=[good, record]
        )

    def row(**keys: Any) -> Any:
        def change(record: pb.ExportRecord) -> None:
            text = record.stored_form.fields["row"].string_value
            record.stored_form["row"] = json.dumps({**json.loads(text), **keys})

        return change

    def sets(name: str, value: Any) -> Any:
        return lambda record: record.stored_form.update({name: value})

    for change, field in (
        (lambda record: record.ClearField("stored_form"), "records[1].stored_form"),
        (sets("of", "nothing"), "records[1].stored_form.of"),
        (sets("row", "{"), "records[1].stored_form.row"),
        (sets("row", "{}"), "records[1].stored_form.row"),
        (sets("row", '{"success_rate": NaN}'), "records[1].stored_form.row"),
        (row(sort_key="x"), "records[1].stored_form.row"),
        (row(task=7), "records[1].stored_form.row"),
        (row(kind="no kind"), "records[1].stored_form.row"),
        (row(task="another"), "records[1].pattern"),
        (lambda record: setattr(record.pattern, "task", "another"), "records[1].pattern"),
        (lambda record: record.pattern.ClearField("task"), "records[1].pattern"),
        (lambda record: record.memory.SetInParent(), "records[1].memory"),
    ):
        failed = await refused(lot, broken(change))
        assert failed.reason == "REQUEST_INVALID"
        assert field in failed.fields or "records[1].pattern.task" in failed.fields, failed.fields
    assert bare(await exported(lot)) == before


async def test_what_belongs_to_unfinished_work_is_not_taken_from_a_record(lot: Lot):
    """A record says nothing of what its server was in the middle of, whoever wrote it."""
    await lot.patterns.SavePattern(pattern={"task": "deploy"}, pattern_id="p")
    messages = await exported(lot)
    (record,) = records_of(messages)
    row = json.loads(record.stored_form.fields["row"].string_value)
    row |= {"pending_ids": [point_id("x", "y")], "request": "r", "writer_id": "w"}
    record.stored_form["row"] = json.dumps(row)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, messages)
    assert bare(await exported(other)) == bare(await exported(lot))


async def test_an_import_without_a_message_is_ended(lot: Lot, monkeypatch):
    from lot_grpc.server.servicers import transfer

    monkeypatch.setattr(transfer, "_OPEN_SECONDS", 0.05)
    failed = await failure(lot.admin.Import().read())
    assert failed.reason == "STREAM_NOT_OPENED"


async def test_watchers_are_told_of_what_is_imported(lot: Lot):
    await lot.memories.CreateMemory(memory={"content": "c"}, memory_id="m")
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    watch = other.memories.WatchChanges()
    await watch.read()
    await imported(other, messages)
    changes: list[Any] = []
    while not changes:
        changes += (await watch.read()).change_events
    assert [(one.id, one.memory.content) for one in changes] == [("m", "c")]
    watch.cancel()
