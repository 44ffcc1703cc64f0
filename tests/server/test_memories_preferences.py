"""PutPreference, GetPreference, ListPreferences and DeletePreference on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from lot_grpc.pb.lot.v1 import preference_pb2
from lot_grpc.server.limits import Limits
from tests.server.service import Lot, serving
from tests.server.wire import failure

P: Any = preference_pb2


def value(json: Any) -> Any:
    """A JSON value as a Value."""
    struct = Struct()
    struct.update({"v": json})
    return struct.fields["v"]


async def put(lot: Lot, json: Any, key: str = "k", **named: Any) -> Any:
    return await lot.memories.PutPreference(key=key, value=value(json), **named)


async def got(lot: Lot, key: str = "k", history: int = 0) -> Any:
    return await lot.memories.GetPreference(key=key, history_limit=history)


async def test_a_preference_is_put_and_read_with_all_that_is_said_of_it(lot):
    first = await put(lot, {"theme": "dark", "size": 12})
    assert first.created
    stored = first.preference
    assert stored.value == value({"theme": "dark", "size": 12})
    assert (stored.key, stored.category, stored.namespace) == ("k", "general", lot.namespace)
    assert stored.revision == 1
    assert stored.etag
    assert stored.create_time == stored.update_time
    assert (await got(lot)).preference == stored
    second = await put(lot, "light", category="editor")
    assert not second.created
    assert (second.preference.revision, second.preference.category) == (2, "editor")
    assert second.preference.create_time == stored.create_time
    answer = await got(lot, history=10)
    assert answer.preference == second.preference
    (former,) = answer.history
    assert former == P.PreferenceRevision(
        revision=1, value=stored.value, category="general", update_time=stored.update_time
    )


@pytest.mark.parametrize(
    "json", [None, False, 0, -1.5, "", "null", [], [None], {}, {"a": {"b": [1, "1", True]}}]
)
async def test_any_json_value_comes_back_as_it_was_given(lot, json):
    await put(lot, "before")
    assert (await put(lot, json)).preference.value == value(json)
    assert (await got(lot)).preference.value == value(json)
    await put(lot, "after")
    assert (await got(lot, history=1)).history[0].value == value(json)


async def test_null_is_a_value_and_none_at_all_is_refused(lot):
    failed = await failure(lot.memories.PutPreference(key="k"))
    assert failed.fields == {"value": "required"}
    failed = await failure(lot.memories.PutPreference(key="k", value=Value()))
    assert failed.fields == {"value": "value.kind"}
    assert "for null, set null_value" in failed.message
    failed = await failure(got(lot))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "PREFERENCE_NOT_FOUND")
    assert failed.metadata == {"namespace": lot.namespace, "id": "k"}


async def test_a_value_of_2_mb_is_refused_with_the_field_and_the_bound(lot):
    largest = "x" * (256 * 1024 - 4)
    assert (await put(lot, largest)).preference.value.string_value == largest
    for json in (largest + "x", "x" * 2_000_000, ["漢字" * 100] * 4000):
        failed = await failure(put(lot, json))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
        assert failed.fields == {"value": "value.max_bytes"}
        assert "at most 262,144 bytes" in failed.message
    assert (await got(lot)).preference.revision == 1


async def test_what_json_does_not_know_and_what_is_too_deep_is_refused(lot):
    for number in (float("nan"), float("inf"), float("-inf")):
        failed = await failure(put(lot, [{"a": number}]))
        assert list(failed.fields) == ["value[0].a"], failed.fields
    deep = value(1)
    for _ in range(16):
        deep = Value(list_value=ListValue(values=[deep]))
    assert (await lot.memories.PutPreference(key="k", value=deep)).created
    deeper = Value(list_value=ListValue(values=[deep]))
    failed = await failure(lot.memories.PutPreference(key="other", value=deeper))
    assert failed.reason == "REQUEST_INVALID"
    assert all(field.startswith("value") for field in failed.fields)


async def test_an_etag_guards_a_put_and_a_delete(lot):
    etag = (await put(lot, 1)).preference.etag
    await put(lot, 2, etag=etag)
    for requested in (put(lot, 3, etag=etag), lot.memories.DeletePreference(key="k", etag=etag)):
        failed = await failure(requested)
        assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
        assert failed.metadata["id"] == "k"
    failed = await failure(put(lot, 3, "none", etag=etag))
    assert failed.reason == "PREFERENCE_NOT_FOUND"
    assert (await got(lot)).preference.value == value(2)


async def test_a_request_id_is_safe_to_repeat_and_refused_for_others(lot):
    first = await put(lot, 1, request_id="r")
    assert await put(lot, 1, request_id="r") == first
    await put(lot, 2)
    later = await put(lot, 1, request_id="r")
    assert (later.preference.value, later.preference.revision) == (value(2), 2)
    failed = await failure(put(lot, 3, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    await lot.memories.DeletePreference(key="k")
    failed = await failure(put(lot, 1, request_id="r"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "PREFERENCE_NOT_FOUND")
    assert "deleted" in failed.message


async def test_the_same_value_again_is_no_new_revision(lot):
    first = await put(lot, {"a": 1, "b": [True]})
    again = await put(lot, {"b": [True], "a": 1}, category="general")
    assert again.preference == first.preference
    assert not again.created


async def test_what_was_deleted_is_gone_with_its_history_and_its_key_is_free(lot):
    await put(lot, 1)
    await put(lot, 2)
    assert (await lot.memories.DeletePreference(key="k")).deleted
    failed = await failure(lot.memories.DeletePreference(key="k"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "PREFERENCE_NOT_FOUND")
    assert not (await lot.memories.DeletePreference(key="k", allow_missing=True)).deleted
    assert (await put(lot, 3)).created
    answer = await got(lot, history=100)
    assert (answer.preference.revision, list(answer.history)) == (1, [])


async def test_lists_are_pages_by_category_with_tokens_that_are_bound_to_them(lot):
    for number in range(25):
        await put(lot, number, f"k{number}", category=f"c{number % 5}")
    keys: list[str] = []
    token = ""
    while True:
        page = await lot.memories.ListPreferences(page_token=token)
        assert len(page.preferences) <= 10
        keys += [one.key for one in page.preferences]
        token = page.next_page_token or token
        if not page.next_page_token:
            break
    assert keys == [f"k{number}" for number in range(24, -1, -1)]
    some = await lot.memories.ListPreferences(categories=["c0", "c4"], page_size=3)
    assert [one.key for one in some.preferences] == ["k24", "k20", "k19"]
    failed = await failure(
        lot.memories.ListPreferences(categories=["c0"], page_token=some.next_page_token)
    )
    assert failed.reason == "PAGE_TOKEN_MISMATCH"


TEXTS = [
    "日本語の設定",
    "الإعدادات",
    "🙂👨‍👩‍👧",
    "e\u0301 ≠ é",
    "100%_a.b=c'\"\\",
    "\u202eabc",
    " a ",
]


@pytest.mark.parametrize("text", TEXTS)
async def test_texts_of_any_script_are_values_and_categories(lot, text):
    await put(lot, {text: [text]}, category=text)
    await put(lot, text, "other", category=f"{text}x")
    page = await lot.memories.ListPreferences(categories=[text])
    assert [(one.key, one.value, one.category) for one in page.preferences] == [
        ("k", value({text: [text]}), text)
    ]


@pytest.mark.parametrize(
    "key", ["a%", "a_", "a=b", "'a'", '"', "漢", "é", "🙂", "", " a", "a b", "-"]
)
async def test_a_key_is_any_text_but_nothing_and_spaces_at_its_ends(lot, key):
    allowed = key.strip() == key != ""
    for call in (lot.memories.GetPreference(key=key), lot.memories.DeletePreference(key=key)):
        failed = await failure(call)
        assert failed.reason == ("PREFERENCE_NOT_FOUND" if allowed else "REQUEST_INVALID")
        assert allowed or list(failed.fields) == ["key"]


async def test_namespaces_do_not_see_each_other(lot):
    other = lot.on(f"{lot.namespace}-other")
    await put(lot, 1)
    assert (await failure(got(other))).reason == "PREFERENCE_NOT_FOUND"
    assert (await put(other, 2)).created
    await other.memories.DeletePreference(key="k")
    assert (await got(lot)).preference.value == value(1)


async def test_a_history_that_is_larger_than_an_answer_says_where_to_read_on():
    async with serving(limits=Limits(max_message_bytes=600_000)) as lot:
        for number in range(5):
            await put(lot, f"{number}" * 100_000)
        answer = await got(lot, history=9)
        assert [one.revision for one in answer.history] == [4, 3, 2]
        [notice] = answer.notices
        assert (notice.field, "ends at revision 2" in notice.message) == ("history", True)
        rest = await lot.memories.GetPreference(key="k", history_limit=9, before_revision=2)
        assert [one.revision for one in rest.history] == [1]
        assert not rest.notices


@pytest.mark.parametrize(
    "key",
    [
        "code style",
        "editor/tab width",
        "język interfejsu",
        "تنظیمات",
        "言語 設定",
        "a`b",
        "#1: <x>",
    ],
)
async def test_a_key_may_be_written_as_people_write(lot, key):
    await lot.memories.PutPreference(key=key, value={"string_value": "v"})
    assert (await lot.memories.GetPreference(key=key)).preference.key == key
    prompt = (await lot.memories.GetTaskContext(task="t")).prompt_text
    assert key in prompt
    assert (await lot.memories.DeletePreference(key=key)).deleted


@pytest.mark.parametrize(
    "key", ["a\nb", "a\x07", "a\u2028b", "a\u202eb", " a", "a ", "\u00a0a", "\U000e0041"]
)
async def test_a_key_has_nothing_that_is_not_seen(lot, key):
    failed = await failure(lot.memories.PutPreference(key=key, value={"string_value": "v"}))
    assert failed.fields == {"key": "preference.key.characters"}


async def test_a_key_has_a_bound(lot):
    failed = await failure(lot.memories.PutPreference(key="ż" * 129, value={"string_value": "v"}))
    assert failed.fields == {"key": "string.max_bytes"}
    assert (await lot.memories.PutPreference(key="ż" * 128, value={"string_value": "v"})).created


async def test_two_unicode_forms_of_a_key_are_one_key(lot):
    first, second = "pr\u00e9f\u00e9rence", "pre\u0301fe\u0301rence"
    assert (await lot.memories.PutPreference(key=first, value={"number_value": 1})).created
    assert not (await lot.memories.PutPreference(key=second, value={"number_value": 2})).created
    found = (await lot.memories.GetPreference(key=second)).preference
    assert (found.key, found.value.number_value) == (first, 2)
