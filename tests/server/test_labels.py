"""Keys of labels, of every kind of thing and in every filter: any script, nothing unseen."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.label_keys import is_label_key
from tests.server.examples import EXAMPLES, example, method_of
from tests.server.test_unicode_forms import FILTERS, _rpc
from tests.server.wire import failure

GOOD = ("team", "a.b/c-d_e", "مشروع", "チーム 名", "équipe", "x (y)", "1", "👩\u200d🚀", "ż" * 128)
BAD = ("", "a=b", "a\nb", "a\x07", "a\u2028b", "a\u202eb", " a", "a\u00a0", "\U000e0041", "ż" * 129)


@pytest.mark.parametrize("kind", FILTERS)
async def test_keys_of_any_script_are_stored_and_filtered_by(lot, kind):
    make, rpc, _ = FILTERS[kind]
    labels = dict.fromkeys(GOOD, "v")
    made = await make(lot, labels=labels)
    await make(lot, labels={"team": "other"}, **({"error_message": "o"} if "error" in kind else {}))
    assert dict(made.labels) == labels
    listing = rpc.replace("Recall", "List").replace("Search", "List")
    for key in GOOD:
        answer = await _rpc(lot, listing)(filter={"labels": {key: "v"}})
        [found] = next(value for field, value in answer.ListFields() if field.name.endswith("s"))
        assert dict(found.labels) == labels


def _with_labels() -> list[tuple[str, str]]:
    """Every RPC with labels in a message of its request, and that field."""
    return [
        (name, field.name)
        for name in EXAMPLES
        for field in method_of(name).input_type.fields
        if field.message_type is not None and "labels" in field.message_type.fields_by_name
    ]


@pytest.mark.parametrize(("rpc", "field"), _with_labels())
async def test_what_is_not_seen_is_refused_in_a_key_by_every_call(lot, rpc, field):
    given: Any = example(rpc, lot.namespace)
    for key in BAD:
        request = type(given)()
        request.CopyFrom(given)
        getattr(request, field).labels[key] = "v"
        fields = {one.name: value for one, value in request.ListFields()}
        failed = await failure(_rpc(lot, rpc)(**fields))
        assert failed.reason == "REQUEST_INVALID", key
        assert set(failed.fields.values()) & {
            "label.key.characters", "string.min_len", "string.max_bytes"
        }, key  # fmt: skip


def test_the_rule_of_files_is_that_of_the_contract():
    assert all(map(is_label_key, GOOD))
    assert not any(map(is_label_key, BAD))
