"""Secrets in what is imported by a server that redacts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.redaction import SecretFinder, read_rules
from lot_grpc.server.redaction import secrets_in
from lot_grpc.server.redactor import Redactor
from tests.server import test_admin_transfer_broken
from tests.server.service import Lot, serving
from tests.server.test_admin_transfer_broken import row_of, with_row
from tests.server.test_redaction import KEY, redacting
from tests.server.transfers import exported, fill, imported, records_of
from tests.server.wire import failure

OLDER = "0.0.1"


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    async with redacting() as service:
        yield service


async def refused(
    lot: Lot, messages: list[pb.ExportResponse], record: pb.ExportRecord, version: str = ""
) -> Any:
    """The failure of an import of a record, after which nothing is stored."""
    failed = await test_admin_transfer_broken.refused(lot, messages, record, version)
    assert KEY not in str(failed)
    assert not records_of(await exported(lot))
    return failed


def without_readable_form(record: pb.ExportRecord) -> pb.ExportRecord:
    """As an earlier version writes a record of which it shows nothing."""
    copy = pb.ExportRecord()
    copy.CopyFrom(record)
    kind = copy.WhichOneof("record")
    if kind:
        getattr(copy, kind).Clear()
        getattr(copy, kind).SetInParent()
    return copy


async def test_the_key_of_a_value_shows_it_in_an_export_too(lot: Lot):
    name, value = "db_password", {"string_value": "hunter22"}
    async with serving() as plain:
        await plain.memories.PutSessionValue(session_id="s", key=name, value=value)
        await plain.memories.PutPreference(key=name, value=value)
        await plain.memories.PutPreference(key=name, value={"number_value": 1})
        messages = await exported(plain)
    redactor = Redactor(SecretFinder(read_rules()), pb.ExportRecord, names=True)
    found = [
        one
        for record in records_of(messages)
        for one in secrets_in(redactor, record, row_of(record)[1])
    ]
    assert sorted(found) == [
        ("preference.history[0].value", ["password"]),
        (f'session.values["{name}"]', ["password"]),
    ]
    request = pb.ImportRequest(header=messages[0].header, records=records_of(messages))
    failed = await failure(lot.admin.Import(iter([request])).read())
    assert set(failed.fields.values()) == {"redact.password"}


async def test_an_import_with_a_secret_is_refused_and_says_what_to_do(lot: Lot):
    async with serving() as plain:
        await plain.memories.CreateMemory(memory={"content": f"it is {KEY}"})
        saved = await plain.patterns.SavePattern(pattern={"task": "t"})
        await plain.patterns.RecordPatternFeedback(
            pattern_id=saved.pattern.pattern_id, helpful=True, text=KEY
        )
        messages = await exported(plain)
    records = {record.WhichOneof("record"): n for n, record in enumerate(records_of(messages))}
    request = pb.ImportRequest(
        namespace=lot.namespace, header=messages[0].header, records=records_of(messages)
    )
    failed = await failure(lot.admin.Import(iter([request])).read())
    assert failed.reason == "REQUEST_INVALID"
    assert f"records[{records['memory']}].memory.content" in failed.message
    assert "LOT_REDACT=false" in failed.message
    assert KEY not in failed.message
    assert not records_of(await exported(lot))


async def test_an_import_without_secrets_is_taken(lot: Lot):
    async with serving() as plain:
        await plain.memories.CreateMemory(memory={"content": "a token is needed: see the wiki"})
        messages = await exported(plain)
    assert (await imported(lot, messages)).imported_count == 1


async def filled_with(write: Callable[[Lot], Any]) -> list[pb.ExportResponse]:
    """An export of a server that does not redact."""
    async with serving() as plain:
        await write(plain)
        return await exported(plain)


async def _memory(lot: Lot) -> None:
    await lot.memories.CreateMemory(memory={"content": f"it is {KEY}"})


async def _event(lot: Lot) -> None:
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    await lot.episodes.RecordEvent(
        episode_id="e", event={"event_type": "tool", "data": {"output": KEY}}
    )


async def _preference(lot: Lot) -> None:
    await lot.memories.PutPreference(key="theme", value={"string_value": KEY})


async def _session_value(lot: Lot) -> None:
    await lot.memories.PutSessionValue(session_id="s", key="k", value={"string_value": KEY})


@pytest.mark.parametrize("write", [_memory, _event, _preference, _session_value])
async def test_what_the_readable_form_omits_is_found_in_what_is_stored(lot: Lot, write: Any):
    messages = await filled_with(write)
    found = 0
    for record in records_of(messages):
        if record.WhichOneof("record") in {"episode", "session"} and KEY not in str(record):
            continue
        failed = await refused(lot, messages, without_readable_form(record), OLDER)
        assert set(failed.fields.values()) == {"redact.github_token"}
        assert "LOT_REDACT=false" in failed.message
        found += 1
    assert found == 1


@pytest.mark.parametrize(
    ("hidden", "field"),
    [
        ({"remark": KEY}, "remark"),
        ({"remark": [{"a": [KEY]}]}, "remark[0].a[0]"),
        ({"remark": {KEY: 1}}, 'remark["[REDACTED:github_token]"]'),
        ({"remark": {"password": "hunter22"}}, "remark.password"),
    ],
)
async def test_a_key_that_no_call_returns_is_searched_too(lot: Lot, hidden: Any, field: str):
    messages = await filled_with(
        lambda plain: plain.memories.CreateMemory(memory={"content": "fine"})
    )
    (record,) = records_of(messages)
    failed = await refused(lot, messages, with_row(record, row_of(record)[1] | hidden))
    assert set(failed.fields) == {f"records[0].stored_form.row.{field}"}


@pytest.mark.parametrize("kind", ["feedback", "memories"])
async def test_a_secret_that_is_escaped_in_the_stored_form_is_found(lot: Lot, kind: str):
    async def write(plain: Lot) -> None:
        await plain.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p")
        await plain.patterns.RecordPatternFeedback(pattern_id="p", helpful=True, text=KEY)
        await plain.memories.CreateMemory(memory={"content": KEY})

    messages = await filled_with(write)
    (record,) = (one for one in records_of(messages) if row_of(one)[0] == kind)
    record = without_readable_form(record)
    text = record.stored_form.fields["row"].string_value
    record.stored_form["row"] = text.replace(KEY, "".join(f"\\u{ord(c):04x}" for c in KEY))
    assert KEY in json.dumps(row_of(record)[1])
    assert KEY not in str(record)
    failed = await refused(lot, messages, record, OLDER)
    assert set(failed.fields.values()) == {"redact.github_token"}


async def test_a_text_that_was_too_long_for_the_readable_form_is_searched(lot: Lot):
    text = f"{'filler ' * 100} {KEY}"
    messages = await filled_with(
        lambda plain: plain.memories.CreateMemory(memory={"content": text})
    )
    (record,) = records_of(messages)
    record.memory.content = ""
    record.stored_form["short"] = True
    failed = await refused(lot, messages, record)
    assert set(failed.fields.values()) == {"redact.github_token"}


async def test_what_has_no_secret_is_imported_whatever_its_kind(lot: Lot):
    async with serving() as plain:
        await fill(plain)
        messages = await exported(plain)
    assert (await imported(lot, messages)).imported_count == len(records_of(messages))


async def test_a_broken_record_is_refused_as_by_a_server_that_does_not_redact(lot: Lot):
    messages = await filled_with(_memory)
    (record,) = records_of(messages)
    row = {key: value for key, value in row_of(record)[1].items() if key != "sort_key"}
    broken = with_row(record, row)
    failed, plain = await refused(lot, messages, broken), await refused_by_plain(messages, broken)
    assert (failed.message, failed.fields) == (plain.message, plain.fields)


async def refused_by_plain(messages: list[pb.ExportResponse], record: pb.ExportRecord) -> Any:
    async with serving() as plain:
        return await refused(plain, messages, record)
