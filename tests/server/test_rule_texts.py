"""What a caller is told of a rule that a request breaks: words, no numbers of enums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import Message

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.pb.buf.validate import validate_pb2
from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_pb2,
    episode_service_pb2,
    memory_pb2,
    memory_service_pb2,
    pattern_pb2,
    pattern_service_pb2,
)
from lot_grpc.server.checking import Checker
from lot_grpc.server.rule_texts import PATTERNS, enum_of
from tests.server.examples import EXAMPLES, method_of

TASK = pattern_pb2.Pattern(task="t")
ID = "a letter or digit, then up to 127 letters, digits, `.`, `_`, `:` or `-`"


def told(message: Message) -> dict[str, str]:
    with pytest.raises(RequestInvalidError) as caught:
        Checker(type(message))(message.SerializeToString())
    return {one.field: one.description for one in caught.value.violations}


def pattern_writer(**fields: Any) -> pattern_service_pb2.SavePatternRequest:
    pattern = pattern_pb2.Pattern(**{"task": "t", **fields})
    return pattern_service_pb2.SavePatternRequest(pattern=pattern)


@pytest.mark.parametrize(
    ("message", "field", "description"),
    [
        (pattern_service_pb2.GetPatternRequest(), "pattern_id", f"must not be empty; use {ID}"),
        (
            pattern_service_pb2.GetPatternRequest(pattern_id="a b"),
            "pattern_id",
            f"must be {ID}",
        ),
        (
            pattern_service_pb2.SavePatternRequest(namespace="-", pattern=TASK),
            "namespace",
            f"must be empty, or {ID}",
        ),
        (
            pattern_writer(labels={"a=b": ""}),
            'labels["a=b"]',
            "key must not contain `=`, control characters, line breaks or bidirectional overrides, "
            "nor begin or end with white space",
        ),
        (pattern_writer(tags=[""]), "tags[0]", "must not be empty"),
        (pattern_writer(tags=["a", "a"]), "tags", "must not have duplicate items"),
        (pattern_writer(tags=[f"{n}" for n in range(101)]), "tags", "must have at most 100 items"),
        (
            pattern_writer(kind=9),
            "kind",
            "9 is not one of PATTERN_KIND_TASK, PATTERN_KIND_CODE, PATTERN_KIND_LEARNED, "
            "PATTERN_KIND_DISTILLED",
        ),
        (pattern_service_pb2.SavePatternRequest(), "pattern", "must be set"),
        (pattern_service_pb2.BatchSavePatternsRequest(), "items", "must not be empty"),
        (
            pattern_service_pb2.RecordOutcomeRequest(pattern_ids=["p"]),
            "outcome",
            "must be one of OUTCOME_SUCCESS, OUTCOME_FAILURE, OUTCOME_PARTIAL",
        ),
        (
            episode_service_pb2.EndEpisodeRequest(
                episode_id="e", status=episode_pb2.EPISODE_STATUS_RUNNING
            ),
            "status",
            "must be one of EPISODE_STATUS_SUCCEEDED, EPISODE_STATUS_FAILED",
        ),
        (
            pattern_service_pb2.RecallPatternsRequest(
                query="x",
                filter=pattern_pb2.PatternFilter(
                    code_kinds=[pattern_pb2.CODE_KIND_ASYNC, pattern_pb2.CODE_KIND_UNSPECIFIED]
                ),
            ),
            "filter.code_kinds[1]",
            "must be one of CODE_KIND_FUNCTION, CODE_KIND_METHOD, CODE_KIND_CLASS, "
            "CODE_KIND_ERROR_HANDLER, CODE_KIND_ALGORITHM, CODE_KIND_ASYNC, CODE_KIND_SNIPPET",
        ),
    ],
)  # fmt: skip
def test_a_rule_is_told_in_words(message, field, description):
    found = told(message)
    [path] = [one for one in found if one == field or one == f"pattern.{field}"]
    assert found[path] == description


def test_an_item_deep_in_a_batch_is_told_with_the_names_of_its_enum():
    batch = pattern_service_pb2.BatchSavePatternsRequest()
    batch.items.add(pattern=TASK)
    batch.items.add().pattern.MergeFromString(b"\x0a\x01p\x20\x4d\x32\x01t")  # pattern_type 77
    assert told(batch)["items[1].pattern.pattern_type"] == (
        "77 is not one of PATTERN_TYPE_SUCCESS, PATTERN_TYPE_FAILURE, PATTERN_TYPE_OPTIMIZATION"
    )


def test_rules_without_words_of_their_own_stay_as_they_are():
    assert told(pattern_writer(confidence=2)) == {
        "pattern.confidence": "must be greater than or equal to 0 and less than or equal to 1"
    }
    memory = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_FACT, content="x" * 2_000_000)
    [description] = told(memory_service_pb2.CreateMemoryRequest(memory=memory)).values()
    assert re.match(r"must be at most \d+ bytes", description)


# --- the whole contract -----------------------------------------------------------------------

_RULES: Any = vars(validate_pb2)["field"]


def messages() -> Iterator[Descriptor]:
    """Every message that a request of the contract can hold."""
    seen: dict[str, Descriptor] = {}
    todo: list[Any] = [method_of(rpc).input_type for rpc in EXAMPLES]
    while todo:
        one = todo.pop()
        if one.full_name not in seen:
            seen[one.full_name] = one
            todo += [field.message_type for field in one.fields if field.message_type is not None]
    yield from seen.values()


def rules(message: Descriptor) -> Iterator[Any]:
    """The FieldRules of its fields, those of items, keys and values too."""
    for field in message.fields:
        rule = field.GetOptions().Extensions[_RULES]
        yield from (rule, rule.repeated.items, rule.map.keys, rule.map.values)


def test_every_regular_expression_of_the_contract_has_words():
    used = {
        rule.string.pattern
        for message in messages()
        for rule in rules(message)
        if rule.string.HasField("pattern")
    }
    assert len(used) >= 3
    assert used <= set(PATTERNS)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_the_words_of_a_regular_expression_are_true(pattern):
    """The lengths that the words tell are those it takes, and so are the letters."""
    words = PATTERNS[pattern].words
    most = 1 + int(words.partition("up to ")[2].split()[0])
    assert re.search(pattern, "a" * most)
    assert not re.search(pattern, "a" * (most + 1))
    assert bool(re.search(pattern, "")) == PATTERNS[pattern].optional
    for letter in map(chr, range(33, 127)):
        if not letter.isalnum():
            assert bool(re.search(pattern, f"a{letter}")) == (f"`{letter}`" in words)
            assert not re.search(pattern, letter)
    assert bool(re.search(pattern, "A")) == ("lower-case" not in words)
    assert bool(re.search(pattern, "1")) == ("letter or digit" in words)


def test_the_enum_of_every_field_is_found_by_its_path():
    found = 0
    for message in messages():
        for field in message.fields:
            if field.enum_type is not None:
                enum: EnumDescriptor | None = enum_of(message, [field.name])
                assert enum is not None
                assert enum.full_name == field.enum_type.full_name
                found += 1
    assert found > 20
    assert enum_of(admin_service_pb2.DESCRIPTOR.message_types_by_name["GetServerInfoRequest"],
                   ["nothing"]) is None  # fmt: skip
