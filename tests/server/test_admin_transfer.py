"""Export and import on the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lot_grpc.domain.ids import point_id
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.service import Lot, serving
from tests.server.wire import failure

DAY = 24 * 3600


async def exported(lot: Lot, **requested: Any) -> list[pb.ExportResponse]:
    return [message async for message in lot.admin.Export(**requested)]


def records_of(messages: Sequence[pb.ExportResponse]) -> list[pb.ExportRecord]:
    return [record for message in messages for record in message.records]


def told(messages: Sequence[pb.ExportResponse]) -> dict[str, int]:
    return dict(messages[-1].summary.record_counts)


async def imported(
    lot: Lot, messages: Sequence[pb.ExportResponse], **opening: Any
) -> pb.ImportResponse:
    """The last acknowledgement of an import of all messages."""
    opening.setdefault("namespace", lot.namespace)
    first = pb.ImportRequest(header=messages[0].header, **opening)
    requests = [first, *(_carrying(one) for one in messages if one.records)]
    acks = [ack async for ack in lot.admin.Import(iter(requests), timeout=60)]
    assert len(acks) == len(requests)
    last: pb.ImportResponse = acks[-1]
    return last


def _carrying(message: pb.ExportResponse) -> pb.ImportRequest:
    return pb.ImportRequest(records=message.records, cursor=message.cursor)


async def fill(lot: Lot) -> None:
    """A little of everything."""
    patterns, memories, learning = lot.patterns, lot.memories, lot.learning
    for number in range(3):
        await patterns.SavePattern(
            pattern={"task": f"log in to site {number}", "code": "def login_form(): ..."}
        )
    named = {"pattern_id": "p", "pattern": {"task": "deploy the site", "labels": {"a.b": "c"}}}
    await patterns.SavePattern(**named, initial_success_rate=0.25)
    await patterns.SavePattern(pattern={"task": "deploy it", "supersedes": "p"}, pattern_id="q")
    for outcome in (1, 2, 3):
        used = await patterns.RecordOutcome(
            pattern_ids=["p", "q"], outcome=outcome, query="how to deploy", reward=0.5
        )
    await patterns.CorrectOutcome(outcome_id=used.outcome_id, outcome=1)
    await patterns.RecordPatternFeedback(pattern_id="p", helpful=True, text="good")
    await memories.CreateMemory(memory={"content": "the port is 8080"}, memory_id="m")
    await memories.CreateMemory(
        memory={"content": "soon gone", "ttl": {"seconds": DAY}}, memory_id="gone"
    )
    await memories.SaveErrorSolution(
        error_solution={"error_message": "KeyError: 'a'", "resolution": "use get"},
        error_solution_id="s",
    )
    await memories.RecordErrorSolutionOutcome(error_solution_id="s", outcome=1)
    for value in ("dark", "light", "none"):
        await memories.PutPreference(key="theme", value={"string_value": value})
    await memories.PutSessionValue(session_id="c", key="k", value={"number_value": 1.5})
    for number in range(3):
        await memories.AppendSessionMessage(
            session_id="c", message={"role": "user", "content": f"message {number}"}
        )
    await lot.episodes.RecordEpisode(
        episode={"task": "fix the tests", "status": "EPISODE_STATUS_SUCCEEDED"},
        episode_id="e",
        events=[{"event_type": "step", "data": {"n": n, "half": n / 2}} for n in range(5)],
    )
    await lot.episodes.StartEpisode(episode={"task": "still running"}, episode_id="r")
    await lot.episodes.RecordEvent(episode_id="r", event={"event_type": "step"})
    await learning.RecordLearningEvent(learning_event={"event_type": "success", "reward": 1})
    await learning.RecordDecision(
        decision={"context": "which store?", "chosen_option": "edge"}, decision_id="d"
    )
    await learning.RecordDecisionOutcome(decision_id="d", outcome=1)
    await learning.RecordSteps(steps=[{"state": {"task_type": "t"}, "action": "a", "reward": 0.5}])
    await lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 99})


COUNTS = {
    "PATTERN": 5, "OUTCOME": 9, "MEMORY": 2, "ERROR_SOLUTION": 1, "PREFERENCE": 1, "SESSION": 1,
    "EPISODE": 2, "EPISODE_EVENT": 6, "LEARNING_EVENT": 1, "DECISION": 1, "ACTION_VALUE": 1,
    "POLICY": 1,
}  # fmt: skip


def bare(messages: Sequence[pb.ExportResponse]) -> list[pb.ExportRecord]:
    """What two exports of the same content have in common."""
    records = []
    for record in records_of(messages):
        copy = pb.ExportRecord()
        copy.CopyFrom(record)
        copy.namespace = ""
        if thing := copy.WhichOneof("record"):
            inner = getattr(copy, thing)
            for message in (inner, getattr(inner, "preference", None)):
                if message is not None and "namespace" in message.DESCRIPTOR.fields_by_name:
                    message.namespace = ""
        records.append(copy)
    return records


async def test_what_was_imported_is_exported_just_so(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    assert messages[0].header.format_version == 1
    assert told(messages) == COUNTS
    other = lot.on(f"{lot.namespace}-other")
    ack = await imported(other, messages)
    assert dict(ack.imported_counts) == COUNTS
    assert (ack.imported_count, ack.unchanged_count) == (len(records_of(messages)), 0)
    assert ack.skipped_count == 0
    assert bare(await exported(other)) == bare(messages)
    again = await imported(other, messages)
    assert (again.imported_count, again.skipped_count) == (0, 0)
    assert again.unchanged_count == ack.imported_count
    assert bare(await exported(lot)) == bare(messages)  # nothing crosses


async def test_what_was_imported_reads_as_it_did(lot: Lot):
    await fill(lot)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, await exported(lot))
    for one, ask in {
        "patterns": lambda lot: lot.patterns.ListPatterns(page_size=50),
        "events": lambda lot: lot.episodes.ListEpisodeEvents(episode_id="e"),
        "episodes": lambda lot: lot.episodes.ListEpisodes(),
        "entries": lambda lot: lot.patterns.ListOutcomes(pattern_id="p"),
        "history": lambda lot: lot.memories.GetPreference(key="theme", history_limit=9),
        "session": lambda lot: lot.memories.GetSession(session_id="c"),
        "decisions": lambda lot: lot.learning.ListDecisions(),
        "policy": lambda lot: lot.admin.GetNamespacePolicy(),
        "best": lambda lot: lot.learning.ListActionValues(state={"task_type": "t"}),
        "solutions": lambda lot: lot.memories.ListErrorSolutions(),
    }.items():
        here, there = str(await ask(lot)), str(await ask(other))
        assert here.replace(lot.namespace, "") == there.replace(other.namespace, ""), one
    recalled = await other.patterns.RecallPatterns(query="how to deploy", min_similarity=0.2)
    before = await lot.patterns.RecallPatterns(query="how to deploy", min_similarity=0.2)
    assert {hit.pattern.pattern_id for hit in recalled.hits} == {
        hit.pattern.pattern_id for hit in before.hits
    }
    assert [hit.score for hit in recalled.hits] == pytest.approx([hit.score for hit in before.hits])


async def test_a_pattern_that_is_saved_again_after_the_import_meets_the_imported_one(lot: Lot):
    await fill(lot)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, await exported(lot))
    content = {"task": "log in to site 1", "code": "def login_form(): ..."}
    there = await lot.patterns.SavePattern(pattern=content)
    here = await other.patterns.SavePattern(pattern=content)
    assert not here.created
    assert here.pattern.pattern_id == there.pattern.pattern_id
    by_id = await other.patterns.SavePattern(pattern={"task": "deploy the site"})
    assert by_id.created  # one with an id of its caller holds no claim


async def test_an_export_goes_on_behind_any_cursor(lot: Lot):
    await fill(lot)
    await lot.episodes.RecordEpisode(
        episode={"task": "long", "status": "EPISODE_STATUS_FAILED"},
        episode_id="long",
        events=[{"event_type": "step", "data": {"text": "x" * 3000}} for _ in range(450)],
    )
    messages = await exported(lot)
    cursors = [message.cursor for message in messages if message.records]
    assert len(cursors) > 5
    for place, cursor in enumerate(cursors):
        rest = await exported(lot, after_cursor=cursor)
        assert rest[0].HasField("header")
        assert [one.records for one in rest if one.records] == [
            one.records for one in messages[place + 2 :] if one.records
        ]


async def test_a_cursor_belongs_to_its_export(lot: Lot):
    await fill(lot)
    cursor = (await exported(lot))[-1].cursor
    assert [one for one in await exported(lot, after_cursor=cursor) if one.records] == []
    failed = await failure(lot.admin.Export(after_cursor=cursor, include_vectors=True).read())
    assert failed.fields == {"after_cursor": "cursor.other_export"}
    for broken in ("x", cursor[:-9], "é", "W10"):
        failed = await failure(lot.admin.Export(after_cursor=broken).read())
        assert failed.fields == {"after_cursor": "cursor.damaged"}


async def test_a_dry_run_counts_and_gives_nothing(lot: Lot):
    await fill(lot)
    messages = await exported(lot, dry_run=True)
    assert records_of(messages) == []
    assert told(messages) == COUNTS


async def test_just_some_kinds(lot: Lot):
    await fill(lot)
    wanted = [resource_kind_pb2.RESOURCE_KIND_MEMORY, resource_kind_pb2.RESOURCE_KIND_EPISODE]
    messages = await exported(lot, resource_kinds=wanted)
    assert told(messages) == {"MEMORY": 2, "EPISODE": 2}


async def test_all_namespaces_keep_theirs(lot: Lot):
    await lot.memories.CreateMemory(memory={"content": "here"}, memory_id="m")
    there = lot.on(f"{lot.namespace}-there")
    await there.memories.CreateMemory(memory={"content": "there"}, memory_id="m")
    messages = await exported(lot, all_namespaces=True)
    async with serving() as empty:
        await imported(empty, messages, namespace="", keep_namespaces=True)
        for one in (lot, there):
            got = await empty.on(one.namespace).memories.GetMemory(memory_id="m")
            assert got == await one.memories.GetMemory(memory_id="m")
        assert told(await exported(empty.on("default"))) == {}


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
    row |= {"unsettled_ids": [point_id("x", "y")], "request": "r", "writer_id": "w"}
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
