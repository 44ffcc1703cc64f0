"""What no caller should send, on every RPC that is carried out: a reason and a path, no harm done.

Every field of every request is tried, found by walking the descriptors, so that a rule that a new
field lacks is noticed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import grpc.aio
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.pb.lot.v1 import pattern_pb2, pattern_service_pb2
from lot_grpc.server.page_token import _request_key
from tests.server.examples import (
    EXAMPLES,
    Place,
    example,
    method_of,
    path_of,
    places,
    prepare,
)
from tests.server.service import Lot
from tests.server.wire import Failure, failure

RPCS = pytest.mark.parametrize("rpc", sorted(EXAMPLES))


async def send(lot: Lot, rpc: str, raw: bytes) -> bytes:
    """One message of bytes to an RPC of any shape; the first answer."""
    method = method_of(rpc)
    if not method.server_streaming:
        return await lot.raw(path_of(rpc))(raw, timeout=30)  # type: ignore[no-any-return]
    call: Any
    if method.client_streaming:
        call = lot.channel.stream_stream(path_of(rpc))(timeout=30)
        await call.write(raw)
    else:
        call = lot.channel.unary_stream(path_of(rpc))(raw, timeout=30)
    answer = await call.read()
    assert answer is not grpc.aio.EOF, await call.code()
    call.cancel()
    return answer  # type: ignore[no-any-return]


async def refused(lot: Lot, rpc: str, request: Any) -> Failure:
    raw = request if isinstance(request, bytes) else request.SerializeToString()
    failed = await failure(_stream_or_unary(lot, rpc, raw))
    assert failed.code == "INVALID_ARGUMENT", f"{rpc}: {failed}"
    return failed


async def _stream_or_unary(lot: Lot, rpc: str, raw: bytes) -> Any:
    if not method_of(rpc).client_streaming:
        return await lot.raw(path_of(rpc))(raw, timeout=30)
    call = lot.channel.stream_unary(path_of(rpc))(iter([raw]), timeout=30)
    return await call


async def contents(lot: Lot) -> tuple[list[Any], list[Any], list[Any]]:
    """All that the namespace has."""
    memories = await lot.memories.SearchMemories(query="c", limit=100)
    return (
        list((await lot.patterns.ListPatterns(page_size=1000)).patterns),
        list((await lot.episodes.ListEpisodes(page_size=1000)).episodes),
        [hit.memory for hit in memories.hits],
    )


@pytest.fixture
async def prepared(lot: Lot) -> Lot:
    await prepare(lot)
    return lot


# --- every field ------------------------------------------------------------------------------


async def test_the_examples_are_good_and_are_all_that_is_carried_out(prepared):
    told = await prepared.admin.GetServerInfo()
    assert sorted(EXAMPLES) == list(told.capabilities)
    tracking = {"DeletePattern": 1, "DeleteMemory": 1, "EndEpisode": 2, "DeleteEpisode": 3}
    tracking |= {"DeletePreference": 1, "ClearSession": 1, "ClearNamespace": 4}
    tracking |= {"DeleteDecision": 1, "DeleteLearningEvent": 1}
    for rpc in sorted(EXAMPLES, key=lambda rpc: tracking.get(rpc.partition(".")[2], 0)):
        if rpc == "AdminService.Compact":  # refused by the embedded store
            continue
        await send(prepared, rpc, example(rpc, prepared.namespace).SerializeToString())


def _texts(place: Place) -> bool:
    return place.field.type == FieldDescriptor.TYPE_STRING or _values(place, "string")


def _doubles(place: Place) -> bool:
    return place.field.type == FieldDescriptor.TYPE_DOUBLE or _values(place, "double")


def _values(place: Place, kind: str) -> bool:
    entry = place.field.message_type
    if entry is None or not entry.GetOptions().map_entry:
        return False
    value = entry.fields_by_name["value"]
    return value.type == {"string": value.TYPE_STRING, "double": value.TYPE_DOUBLE}[kind]


def _named(place: Place, *kinds: str) -> bool:
    kind = place.field.message_type
    return kind is not None and kind.full_name in kinds


def broken(rpc: str, namespace: str) -> Iterator[tuple[str, Any]]:
    """(path, request) for each field of the request and each value that is wrong for it."""
    for place in places(method_of(rpc).input_type):
        for value in _wrong_for(place):
            request = example(rpc, namespace)
            place.put(request, value)
            yield place.path, request


def _wrong_for(place: Place) -> list[Any]:
    if _texts(place):
        return ["a\0b"]
    if _doubles(place):
        return [float("nan"), float("inf"), float("-inf")]
    if place.field.enum_type is not None:
        return [77, -1]
    if _named(place, "google.protobuf.Timestamp"):
        return [Timestamp(seconds=2**62), Timestamp(nanos=-1), Timestamp(seconds=-(2**40))]
    if _named(place, "google.protobuf.Duration"):
        impossible = [Duration(seconds=2**62), Duration(seconds=1, nanos=-1)]
        ignored = "outcomes." in place.path  # only the server gives it
        return impossible if ignored else [*impossible, Duration(seconds=-5)]
    if _named(place, "google.protobuf.Struct"):
        return [deep(17), json_struct({"a": "\0"}), json_struct({"a": {"b": [float("nan")]}})]
    return []


def json_struct(values: dict[str, Any]) -> Struct:
    struct = Struct()
    struct.update(values)
    return struct


def deep(levels: int) -> Struct:
    inner: Any = 1
    for _ in range(levels):
        inner = {"a": inner}
    return json_struct(inner)


@RPCS
async def test_a_value_that_no_field_can_hold_is_refused_with_its_path(prepared, rpc):
    before = await contents(prepared)
    for path, request in broken(rpc, prepared.namespace):
        failed = await refused(prepared, rpc, request)
        assert failed.reason == "REQUEST_INVALID"
        if rpc == "AdminService.Import" and path.startswith("records[0]"):
            path = "records[0]"  # compared as a whole with what the server would say
        assert any(field.startswith(path) for field in failed.fields), (path, failed.fields)
        assert int(failed.metadata["violations"]) >= 1
    assert await contents(prepared) == before


@RPCS
async def test_a_namespace_of_another_form_is_refused(lot, rpc):
    for namespace in ("no space", "-x", ".x", "x" * 129, "a/b", "é", "\n", "a\n", "_lot"):
        request = example(rpc, namespace)
        failed = await refused(lot, rpc, request)
        repeated = [f.name for f, value in request.ListFields() if value == namespace]
        assert failed.fields == dict.fromkeys(repeated, "string.pattern")
        assert "namespace" in failed.fields


@RPCS
async def test_bytes_that_are_no_request_are_refused(lot, rpc):
    for raw, cause in (
        (b"\x0a\x03\xff\xfe\xfd", "UTF-8"),  # field 1, the namespace
        (b"\x0a\x05abc", "truncated"),
        (b"\xff" * 50, "truncated"),
        (b"\x0b" * 500, "truncated"),  # groups without an end
    ):
        failed = await refused(lot, rpc, raw)
        assert failed.reason == "REQUEST_MALFORMED"
        assert failed.metadata == {"type": method_of(rpc).input_type.full_name}
        assert cause in failed.message


ONE_OF_SEVERAL = {
    "AdminService.UpdateNamespacePolicy": "update_namespace_policy.says_something",
    "MemoryService.FindErrorSolutions": "find_error_solutions.error.required",
    "LearningService.GetRecommendations": "get_recommendations.task.required",
    "MemoryService.GetTaskContext": "get_task_context.task.required",
    "PatternService.RecordPatternFeedback": "record_pattern_feedback.says_something",
    "PatternService.PrunePatterns": "prune_patterns.criterion",
    "PatternService.ListOutcomes": "list_outcomes.one_id",
    "PatternService.RecordOutcome": "record_outcome.names_something",
    "LearningService.SubmitFeedback": "submit_feedback.judgement.required",
}
"""Rules of requests that need one field or another, which are broken by the request itself."""


@pytest.mark.parametrize(
    "rpc", sorted({rpc for rpc in EXAMPLES if EXAMPLES[rpc]} - {"EpisodeService.RecordEvents"})
)
async def test_a_request_without_what_it_needs_is_refused(lot, rpc):
    request = method_of(rpc).input_type._concrete_class(namespace=lot.namespace)
    failed = await refused(lot, rpc, request)
    assert failed.reason == "REQUEST_INVALID"
    if rpc in ONE_OF_SEVERAL:
        assert failed.fields[""] == ONE_OF_SEVERAL[rpc]
    else:
        named = {field.partition(".")[0] for field in failed.fields}
        assert named >= {name for name in EXAMPLES[rpc] if name != "outcome"}


@RPCS
async def test_an_id_of_another_form_is_refused(lot, rpc):
    ids = [p for p in places(method_of(rpc).input_type, depth=0) if p.path.endswith("_id")]
    for place in ids:
        if place.path == "task_id":  # the caller's own, of any form
            continue
        for wrong in ("no space", "-x", "x" * 129, "é", "a\n"):
            request = example(rpc, lot.namespace)
            place.put(request, wrong)
            failed = await refused(lot, rpc, request)
            one_too_many = {"": "list_outcomes.one_id"} if place.path not in EXAMPLES[rpc] else {}
            more = one_too_many if rpc == "PatternService.ListOutcomes" else {}
            assert failed.fields == {place.path: "string.pattern", **more}


# --- limits -----------------------------------------------------------------------------------

LIMITED = [
    (rpc, place.path, {"limit": 100, "page_size": 1000}[place.path])
    for rpc in sorted(EXAMPLES)
    for place in places(method_of(rpc).input_type, depth=0)
    if place.path in {"limit", "page_size"}
]


def test_the_limits_of_many_calls_are_tried():
    assert len(LIMITED) >= 7


@pytest.mark.parametrize(("rpc", "name", "most"), LIMITED)
async def test_a_limit_beyond_the_most_is_refused_and_not_made_fit(prepared, rpc, name, most):
    for wrong in (most + 1, -1, 2**31 - 1, -(2**31)):
        request = example(rpc, prepared.namespace)
        setattr(request, name, wrong)
        assert set((await refused(prepared, rpc, request)).fields) == {name}
    for good in (0, 1, most):
        request = example(rpc, prepared.namespace)
        setattr(request, name, good)
        await send(prepared, rpc, request.SerializeToString())


# --- long and many ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rpc", "path"),
    [
        ("PatternService.SavePattern", "pattern.task"),
        ("PatternService.SavePattern", "pattern.code"),
        ("PatternService.RecallPatterns", "query"),
        ("EpisodeService.StartEpisode", "episode.context"),
        ("EpisodeService.EndEpisode", "summary"),
        ("MemoryService.CreateMemory", "memory.content"),
        ("MemoryService.SearchMemories", "query"),
        ("PatternService.DeletePattern", "etag"),
    ],
)
async def test_a_text_of_10_mb_is_refused(prepared, rpc, path):
    [place] = [place for place in places(method_of(rpc).input_type) if place.path == path]
    request = example(rpc, prepared.namespace)
    place.put(request, "x" * 10_000_000)
    failed = await refused(prepared, rpc, request)
    assert failed.fields == {path: "string.max_bytes"}


async def test_texts_are_measured_in_bytes(lot):
    task = "漢" * (65536 // 3)
    answer = await lot.patterns.SavePattern(pattern={"task": task})
    assert answer.pattern.task == task
    failed = await failure(lot.patterns.SavePattern(pattern={"task": task + "漢"}))
    assert failed.fields == {"pattern.task": "string.max_bytes"}


async def test_sixteen_levels_are_stored_and_seventeen_are_not(lot):
    answer = await lot.patterns.SavePattern(pattern={"task": "t", "metadata": deep(16)})
    again = await lot.patterns.GetPattern(pattern_id=answer.pattern.pattern_id)
    assert again.pattern.metadata == deep(16)
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "u", "metadata": deep(17)}))
    assert set(failed.fields.values()) == {"struct.depth"}
    failed = await failure(
        lot.patterns.SavePattern(
            pattern={"task": "u", "actions": [{"tool": "x", "args": deep(17)}]}
        )
    )
    assert set(failed.fields.values()) == {"struct.depth"}


async def test_everything_wrong_is_listed_at_once(lot):
    failed = await failure(
        lot.patterns.SavePattern(
            namespace="no space",
            pattern={
                "kind": 77,
                "confidence": 2,
                "tags": ["a", "a", ""],
                "labels": {"no=sign": "v", "k": "v" * 257},
                "actions": [{"tool": "x"}, {}],
                "metadata": {"a": "\0"},
            },
            pattern_id="no space",
            initial_success_rate=1.5,
        )
    )
    assert set(failed.fields) == {
        "namespace",
        "pattern.task",
        "pattern.kind",
        "pattern.confidence",
        "pattern.tags",
        "pattern.tags[2]",
        'pattern.labels["no=sign"]',
        'pattern.labels["k"]',
        "pattern.actions[1].tool",
        "pattern.metadata.a",
        "pattern_id",
        "initial_success_rate",
    }
    assert failed.metadata["violations"] == str(len(failed.fields))
    descriptions = {v.description for v in failed.details["BadRequest"].field_violations}
    assert all(descriptions)


async def test_odd_but_good_content_is_kept_as_it_is(lot):
    odd = "\u202e\U0001f642\ufeff\x7f\x01\n\r\t'\"\\{}$%\u2028"
    metadata = {odd: odd, "": "", "a.b[0]": [[], {}, None], "$": {"namespace": "x"}, "id": 1}
    answer = await lot.patterns.SavePattern(
        pattern={
            "task": odd,
            "metadata": metadata,
            "tags": [odd],
            "category": odd,
            "labels": {"a.b": odd},
            "actions": [{"tool": odd, "args": metadata}],
        }
    )
    again = (await lot.patterns.GetPattern(pattern_id=answer.pattern.pattern_id)).pattern
    assert again == answer.pattern
    assert again.task == odd
    assert again.metadata == json_struct(metadata)
    for requested in ({"tags_all": [odd]}, {"categories": [odd]}, {"labels": {"a.b": odd}}):
        found = await lot.patterns.ListPatterns(filter=requested)
        assert [p.pattern_id for p in found.patterns] == [again.pattern_id]


@pytest.mark.parametrize("number", [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 1e22])
async def test_numbers_are_kept_to_the_last_bit(lot, number):
    answer = await lot.patterns.SavePattern(
        pattern={"task": "t", "metadata": {"n": number}, "confidence": 0.1 + 0.2}
    )
    again = (await lot.patterns.GetPattern(pattern_id=answer.pattern.pattern_id)).pattern
    assert again.metadata["n"] == number
    assert again.confidence == 0.1 + 0.2


async def test_fields_of_a_later_contract_are_ignored(lot):
    request = pattern_service_pb2.SavePatternRequest(
        namespace=lot.namespace, pattern=pattern_pb2.Pattern(task="t")
    )
    raw = request.SerializeToString() + b"\xfa\x3e\x02hi"  # field 1007
    answer = await lot.raw(path_of("PatternService.SavePattern"))(raw)
    assert pattern_service_pb2.SavePatternResponse.FromString(answer).created


# --- page tokens ------------------------------------------------------------------------------

LISTS = [
    "PatternService.ListPatterns",
    "EpisodeService.ListEpisodes",
    "EpisodeService.ListEpisodeEvents",
]


async def _filled(lot: Lot) -> None:
    await prepare(lot)
    for n in range(3):
        await lot.patterns.SavePattern(pattern={"task": f"t{n}"})
        await lot.episodes.StartEpisode(episode={"task": f"t{n}"})
        await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})


async def _page(lot: Lot, rpc: str, **fields: Any) -> Any:
    request = example(rpc, lot.namespace)
    request.page_size = 1
    for name, value in fields.items():
        if name == "filter":
            request.filter.tags_any.append(value)
        else:
            setattr(request, name, value)
    raw = await send(lot, rpc, request.SerializeToString())
    return method_of(rpc).output_type._concrete_class.FromString(raw)


@pytest.mark.parametrize("rpc", LISTS)
async def test_a_page_token_goes_on_only_with_the_list_that_gave_it(lot, rpc):
    await _filled(lot)
    token = (await _page(lot, rpc)).next_page_token
    assert token
    assert (await _page(lot, rpc, page_token=token)).next_page_token
    others: list[dict[str, Any]] = [{"namespace": f"{lot.namespace}-other"}]
    if rpc.endswith("Events"):
        await lot.on(f"{lot.namespace}-other").episodes.StartEpisode(
            episode={"task": "t"}, episode_id="e"
        )
        others += [{"after_sequence": 1}]
    else:
        others += [{"filter": "x"}]
    for other in others:
        failed = await failure(_page(lot, rpc, page_token=token, **other))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "PAGE_TOKEN_MISMATCH")
        assert "without" in failed.message


@pytest.mark.parametrize("rpc", LISTS)
async def test_a_token_of_another_list_is_refused(lot, rpc):
    await _filled(lot)
    for other in LISTS:
        token = (await _page(lot, other)).next_page_token
        if other != rpc:
            failed = await failure(_page(lot, rpc, page_token=token))
            assert failed.reason == "PAGE_TOKEN_MISMATCH"


def _forged(rpc: str, namespace: str, position: Any, version: Any = 1) -> str:
    request = example(rpc, namespace)
    text = json.dumps([version, _request_key(request), position])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("rpc", LISTS)
async def test_a_damaged_token_is_refused(lot, rpc):
    await _filled(lot)
    noise = ["x", "====", "é", "AAAA", "W10", "bnVsbA", "MQ", "e30", "a" * 4096, "%00"]
    for token in [*noise, base64.urlsafe_b64encode(b"[" * 2000).decode()]:
        failed = await failure(_page(lot, rpc, page_token=token))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "PAGE_TOKEN_MISMATCH")


@pytest.mark.parametrize("rpc", LISTS)
async def test_a_token_that_was_made_up_is_refused(lot, rpc):
    await _filled(lot)
    numbers = [None, 1.5, True, -1, 10**40, 2**63, float("nan"), float("inf")]
    texts = ["no-uuid", "\0", "{00000000-0000-0000-0000-000000000000}", "x" * 36]
    positions: list[Any] = [*numbers, *([n] for n in numbers), *([1, text] for text in texts)]
    for position in [*positions, "x", {}, [], [1, 2], [1, None]]:
        token = _forged(rpc, lot.namespace, position)
        failed = await failure(_page(lot, rpc, page_token=token))
        assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "PAGE_TOKEN_MISMATCH")


async def test_a_token_of_another_version_is_refused(lot):
    rpc = LISTS[0]
    failed = await failure(_page(lot, rpc, page_token=_forged(rpc, lot.namespace, [1], version=2)))
    assert failed.reason == "PAGE_TOKEN_MISMATCH"
