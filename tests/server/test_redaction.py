"""Secrets in what is sent to a server that redacts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from google.protobuf.message import Message

from lot_grpc.pb.lot.v1 import episode_service_pb2, outcome_pb2
from lot_grpc.redaction import SecretFinder, read_rules
from lot_grpc.server.call import Method
from lot_grpc.server.guards import Guards
from lot_grpc.server.redaction import concerned
from lot_grpc.server.redactor import Redactor
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.secrets import keys
from tests.server.service import SERVICES, Lot, serving
from tests.server.transfers import exported, records_of
from tests.server.wire import failure

KEY = keys.FIT["github_token"](random.Random(1))
HEXADECIMAL = keys.PLACED["assigned_key hexadecimal"](random.Random(1))
OTHER = keys.FIT["github_token"](random.Random(2))
MARK = "[REDACTED:github_token]"


def redacting(*store: Any, **options: Any) -> Any:
    return serving(*store, guards=Guards(secrets=SecretFinder(read_rules())), **options)


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    async with redacting() as service:
        yield service


def notices(response: Any) -> dict[str, str]:
    """The notices of what was redacted: rules by field."""
    return {
        notice.field: notice.message.rpartition(": ")[2]
        for notice in response.notices
        if notice.code == outcome_pb2.NOTICE_CODE_REDACTED
    }


async def test_a_save_stores_no_secret_and_names_field_and_rule_but_not_the_secret(lot: Lot):
    saved = await lot.patterns.SavePattern(
        pattern={
            "task": f"deploy with {KEY}",
            "labels": {"password": "hunter22"},
            "tags": ["ci", f"x {KEY}"],
            "metadata": {"env": {"api_key": HEXADECIMAL}, "log": ["ok", f"used {KEY}"]},
            "actions": [{"tool": "curl", "args": {"url": "https://ann:S3cretWord@x.org/"}}],
        }
    )
    assert notices(saved) == {
        "pattern.task": "github_token",
        'pattern.labels["password"]': "password",
        "pattern.tags[1]": "github_token",
        "pattern.metadata.env.api_key": "assigned_key",
        "pattern.metadata.log[1]": "github_token",
        "pattern.actions[0].args.url": "url_password",
    }
    stored = (await lot.patterns.GetPattern(pattern_id=saved.pattern.pattern_id)).pattern
    assert stored.task == f"deploy with {MARK}"
    assert stored.actions[0].args["url"] == "https://ann:[REDACTED:url_password]@x.org/"
    for secret in (KEY, "hunter22", HEXADECIMAL, "S3cretWord"):
        assert secret not in str(saved)
        assert all(secret not in str(record) for record in records_of(await exported(lot)))


async def test_a_server_that_does_not_redact_stores_what_it_is_given():
    async with serving() as plain:
        saved = await plain.memories.CreateMemory(memory={"content": KEY})
        assert saved.memory.content == KEY
        assert not saved.notices


async def test_a_retry_is_the_same_request_also_with_its_notices(lot: Lot):
    def save(text: str) -> Any:
        return lot.memories.CreateMemory(memory={"content": text}, request_id="r")

    first, again = await save(f"it is {KEY}"), await save(f"it is {KEY}")
    assert first.memory.memory_id == again.memory.memory_id
    assert notices(first) == notices(again) == {"memory.content": "github_token"}
    failed = await failure(save("something else"))
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_ids_keys_and_etags_stay(lot: Lot):
    await lot.memories.CreateMemory(memory={"content": "c"}, memory_id=KEY)
    assert (await lot.memories.GetMemory(memory_id=KEY)).memory.memory_id == KEY
    await lot.memories.PutPreference(key=KEY, value={"string_value": "v"})
    assert (await lot.memories.GetPreference(key=KEY)).preference.value.string_value == "v"


async def test_the_key_of_a_value_shows_that_it_is_a_secret(lot: Lot):
    put = await lot.memories.PutPreference(
        key="openai_api_key", value={"string_value": HEXADECIMAL}
    )
    assert put.preference.value.string_value == "[REDACTED:assigned_key]"
    assert notices(put) == {"value": "assigned_key"}
    put = await lot.memories.PutSessionValue(
        session_id="s", key="db_password", value={"string_value": "hunter22"}
    )
    assert notices(put) == {"value": "password"}
    created = await lot.memories.CreateMemory(
        memory={"content": "c", "metadata": {"db_password": ["hunter22", {"x": "hunter22"}]}}
    )
    assert notices(created) == {"memory.metadata.db_password[0]": "password"}


async def test_keys_with_secrets_are_redacted_and_none_is_lost(lot: Lot):
    created = await lot.memories.CreateMemory(
        memory={"content": "c", "metadata": {KEY: 1, OTHER: 2}, "labels": {KEY: "a"}}
    )
    assert sorted(created.memory.metadata.fields) == [MARK, f"{MARK} 2"]
    assert dict(created.memory.labels) == {MARK: "a"}
    assert KEY not in str(created)


async def test_of_many_keys_with_secrets_none_is_lost(lot: Lot):
    chance = random.Random(4)
    fields = {keys.FIT["github_token"](chance): number for number in range(500)}
    created = await lot.memories.CreateMemory(memory={"content": "c", "metadata": fields})
    stored = created.memory.metadata
    assert sorted(int(stored[key]) for key in stored) == list(range(500))
    assert set(stored) == {MARK, *(f"{MARK} {number}" for number in range(2, 501))}


async def test_tags_that_become_equal_are_one(lot: Lot):
    created = await lot.memories.CreateMemory(
        memory={"content": "c", "tags": [KEY, "other", OTHER]}
    )
    assert list(created.memory.tags) == [MARK, "other"]


async def test_a_text_does_not_exceed_its_limit(lot: Lot):
    longest = 256
    token = keys.FIT["twilio_key"](random.Random(3))  # shorter than a full replacement is not
    text = ("password=a1b2c3;" * 16)[:longest]
    created = await lot.memories.CreateMemory(memory={"content": token, "tags": [text]})
    assert len(created.memory.tags[0].encode()) <= longest
    assert "a1b2c3" not in created.memory.tags[0]


async def test_what_was_stored_before_is_redacted_by_an_update_with_the_stored_text():
    clock = FixedClock()
    store = InMemoryStore(clock)
    async with serving(store, clock=clock) as plain:
        created = await plain.memories.CreateMemory(memory={"content": f"it is {KEY}"})
        async with redacting(store, clock=clock) as lot:
            updated = await lot.on(plain.namespace).memories.UpdateMemory(
                memory_id=created.memory.memory_id,
                memory={"content": created.memory.content},
                update_mask={"paths": ["content"]},
            )
            assert updated.memory.content == f"it is {MARK}"
            assert KEY not in str(records_of(await exported(plain)))


async def test_the_query_of_a_recall_is_redacted_in_its_receipt(lot: Lot):
    await lot.patterns.SavePattern(pattern={"task": "deploy the site"})
    recalled = await lot.patterns.RecallPatterns(query=f"deploy the site with {KEY}")
    assert notices(recalled) == {"query": "github_token"}
    receipt = await lot.learning.GetRetrieval(retrieval_id=recalled.retrieval_id)
    assert receipt.retrieval.query == f"deploy the site with {MARK}"


async def test_filters_stay_so_that_records_of_before_are_found_and_deleted_by_them():
    clock = FixedClock()
    store = InMemoryStore(clock)
    async with serving(store, clock=clock) as plain:
        await plain.memories.CreateMemory(memory={"content": "c", "tags": [KEY]})
        async with redacting(store, clock=clock) as lot:
            lot = lot.on(plain.namespace)
            listed = await lot.memories.ListMemories(filter={"tags_any": [KEY]})
            assert len(listed.memories) == 1
            deleted = await lot.memories.DeleteMemories(filter={"tags_any": [KEY]})
            assert deleted.deleted_count == 1


async def test_events_of_a_stream_are_redacted_each(lot: Lot):
    started = await lot.episodes.StartEpisode(episode={"task": "t"})
    requests = [
        episode_service_pb2.RecordEventsRequest(
            namespace=lot.namespace, episode_id=started.episode.episode_id
        )
    ]
    for number, text in enumerate(("fine", f"saw {KEY}", "fine again"), 1):
        request = episode_service_pb2.RecordEventsRequest()
        event = request.events.add(event_type="tool", sequence=number)
        event.data["output"] = text
        requests.append(request)
    answers = [answer async for answer in lot.episodes.RecordEvents(iter(requests))]
    assert answers[-1].last_sequence == 3
    told = [field for answer in answers for field in notices(answer)]
    assert told == ["events[0].data.output"]
    listed = await lot.episodes.ListEpisodeEvents(episode_id=started.episode.episode_id)
    assert [event.data["output"] for event in listed.events] == [
        "fine",
        f"saw {MARK}",
        "fine again",
    ]


async def test_a_long_request_is_redacted_too(lot: Lot):
    text = "lorem ipsum " * 20_000
    created = await lot.memories.CreateMemory(memory={"content": f"{text} {KEY}"})
    assert created.memory.content.endswith(f" {MARK}")


async def test_many_redacted_fields_are_named_up_to_a_number(lot: Lot):
    pattern = {"task": "t", "metadata": {f"k{number}": KEY for number in range(60)}}
    told = (await lot.patterns.SavePattern(pattern=pattern)).notices
    assert len(told) == 51
    assert told[-1].message == "10 more fields were redacted"


async def test_the_log_has_no_secret(lot: Lot):
    await lot.memories.CreateMemory(memory={"content": KEY})
    await failure(lot.memories.CreateMemory(memory={"title": KEY}))
    assert KEY not in str(lot.log)


# --- what is concerned ------------------------------------------------------------------------


def _methods() -> Iterator[Any]:
    for service in SERVICES.values():
        yield from map(Method.of, service.methods)


def test_every_write_of_texts_and_every_recall_is_concerned_and_can_say_so():
    found = {method.name: method for method in _methods() if concerned(method)}
    assert {name for name, method in found.items() if not method.writes} == {
        "EpisodeService.RecallEpisodes",
        "MemoryService.FindErrorSolutions",
        "MemoryService.GetTaskContext",
        "MemoryService.SearchMemories",
        "PatternService.RecallPatterns",
    }
    writes = {method.name for method in _methods() if method.writes}
    deletes = {
        name for name in writes if name.partition(".")[2].startswith(("Delete", "Clear", "Erase"))
    }
    assert writes - deletes - set(found) == {
        "AdminService.Compact",
        "AdminService.Reindex",
        "AdminService.SeedKnowledge",  # the operator's own files
        "AdminService.UpdateNamespacePolicy",
        "PatternService.DistillPatterns",
        "PatternService.PrunePatterns",
    }
    without = {
        name
        for name, method in found.items()
        if "notices" not in method.response_type.DESCRIPTOR.fields_by_name
    }
    assert without == {"AdminService.Import"}  # it refuses


def filled(kind: Any, depth: int = 0) -> Any:
    """A message with a secret in every text that it can have."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        of = field.message_type
        if field.containing_oneof and message.WhichOneof(field.containing_oneof.name):
            continue
        if of is None:
            if field.type == field.TYPE_STRING and field.is_repeated:
                getattr(message, field.name).append(KEY)
            elif field.type == field.TYPE_STRING:
                setattr(message, field.name, KEY)
        elif of.GetOptions().map_entry:
            value = of.fields_by_name["value"]
            if value.type == value.TYPE_STRING:
                getattr(message, field.name)["k"] = KEY
            elif value.message_type is not None:
                item = filled(value.message_type._concrete_class, depth + 1)
                getattr(message, field.name)["k"].CopyFrom(item)
        elif of.name == "Value":
            getattr(message, field.name).string_value = KEY
        elif depth < 6 and field.is_repeated:
            getattr(message, field.name).append(filled(of._concrete_class, depth + 1))
        elif depth < 6:
            getattr(message, field.name).CopyFrom(filled(of._concrete_class, depth + 1))
    return message


def texts_of(message: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts of a message, with the names of the fields that lead to them."""
    for field, value in message.ListFields():
        items = value if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            items = [*value, *(value[key] for key in value)]
        for item in items:
            if isinstance(item, Message):
                yield from texts_of(item, (*path, field.name))
            elif isinstance(item, str):
                yield (*path, field.name), item


NAMES = {"etag", "id", "key", "namespace", "namespaces", "superseded_by", "supersedes"}


@pytest.mark.parametrize(
    "method",
    [m for m in _methods() if concerned(m) and m.name != "AdminService.Import"],
    ids=lambda m: m.name,
)
def test_only_what_identifies_keeps_a_secret(method: Any):
    message = filled(method.request_type)
    Redactor(SecretFinder(read_rules()), method.request_type).redact(message)
    for path, text in texts_of(message):
        if text == KEY and not {"filter", "read_mask", "update_mask"}.intersection(path):
            assert path[-1] in NAMES or path[-1].endswith(("_id", "_ids")), path
