"""Which calls are repeated over the wire, by both clients, until the deadline."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest
from either import Either
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass
from lot_client import LotError, RetryPolicy
from lot_client.failed_calls import FailedCalls
from lot_client.pb.lot.v1 import learning_pb2 as learning
from lot_client.pb.lot.v1 import memory_service_pb2_grpc as memories_grpc
from lot_client.pb.lot.v1 import pattern_service_pb2 as patterns
from lot_client.pb.lot.v1 import pattern_service_pb2_grpc as patterns_grpc
from lot_client.pb.lot.v1 import preference_pb2 as preferences
from lot_client.requests import identified, is_safe
from scripted import ends
from test_namespaces import RPCS

QUICK = RetryPolicy(first_delay=0.001, max_delay=0.01)


class Failing(memories_grpc.MemoryServiceServicer, patterns_grpc.PatternServiceServicer):
    """Fails by a script, then answers."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.requests: list[Any] = []
        self._server = grpc.server(ThreadPoolExecutor(4))
        memories_grpc.add_MemoryServiceServicer_to_server(self, self._server)
        patterns_grpc.add_PatternServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        self._server.stop(0).wait()

    def _step(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        if self.script:
            self.script.pop(0)(context)

    def SavePattern(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._step(request, context)
        return patterns.SavePatternResponse(created=True)

    def DeletePattern(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._step(request, context)
        return patterns.DeletePatternResponse(deleted=True)

    def PutPreference(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._step(request, context)
        return preferences.PutPreferenceResponse()


@pytest.fixture
def failing() -> Iterator[Failing]:
    made = Failing()
    yield made
    made.close()


PASSING = [
    ends(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_after=0.01),
    ends(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", retry_after=0.01),
    ends(grpc.StatusCode.FAILED_PRECONDITION, "NAMESPACE_CLEARING", retry_after=0.01),
    ends(grpc.StatusCode.UNAVAILABLE),
    ends(grpc.StatusCode.CANCELLED),
]


async def test_what_passes_is_repeated_with_the_same_request_id(either: Either, failing: Failing):
    failing.script = PASSING * 4
    async with either(failing.address, retry=QUICK) as client:
        assert (await client.save_pattern("A task")).created

    assert len(failing.requests) == 21
    assert len({request.request_id for request in failing.requests}) == 1
    assert failing.requests[0].request_id


async def test_a_call_of_a_stub_is_repeated_too(either: Either, failing: Failing):
    failing.script = PASSING[:]
    request = preferences.PutPreferenceRequest(key="editor")
    async with either(failing.address, retry=QUICK, namespace="team-a") as client:
        await client.call(client.memories.PutPreference, request)

    assert len(failing.requests) == 6
    assert len({each.request_id for each in failing.requests}) == 1
    assert {each.namespace for each in failing.requests} == {"team-a"}
    assert request == preferences.PutPreferenceRequest(key="editor")


async def test_a_call_without_an_id_is_repeated_only_if_nothing_was_done(
    either: Either, failing: Failing
):
    failing.script = PASSING[:1] * 3 + PASSING[1:2]
    async with either(failing.address, retry=QUICK) as client:
        with pytest.raises(LotError) as caught:
            await client.delete_pattern("p")

    assert (caught.value.method, caught.value.reason) == ("DeletePattern", "SHUTTING_DOWN")
    assert caught.value.tries == len(failing.requests) == 4


async def test_an_error_says_which_call_and_what_to_do(either: Either, failing: Failing):
    failing.script = [ends(grpc.StatusCode.UNAVAILABLE)] * 3
    async with either(failing.address, retry=RetryPolicy(attempts=3, first_delay=0.001)) as client:
        with pytest.raises(LotError) as caught:
            await client.save_pattern("A task")

    assert str(caught.value) == (
        "SavePattern: UNAVAILABLE: scripted ; "
        "check the address, and that the server is running (after 3 tries)"
    )
    assert caught.value.request_id == failing.requests[0].request_id


def test_what_is_safe_follows_from_the_contract():
    reads = {
        rpc.name
        for rpc in RPCS
        if rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    }
    safe = set()
    for rpc in RPCS:
        assert rpc.input_type.name == f"{rpc.name}Request"
        request: Any = GetMessageClass(rpc.input_type)()
        if is_safe(identified(request)[0]):
            safe.add(rpc.name)
        with_ids = "request_id" in rpc.input_type.fields_by_name
        assert not (with_ids and is_safe(request))

    assert reads < safe
    assert {"GetPattern", "SavePattern", "BatchSavePatterns", "SubmitFeedback"} < safe
    assert not {rpc.name for rpc in RPCS if rpc.name.startswith(("Delete", "Update"))} & safe
    assert not {"ClearNamespace", "ClearSession", "PrunePatterns", "Import"} & safe


def test_ids_are_given_where_there_are_none_and_the_callers_are_kept():
    batch = patterns.BatchSavePatternsRequest()
    batch.items.add(request_id="mine")
    batch.items.add()
    filled, _ = identified(batch)

    assert filled.items[0].request_id == "mine"
    assert filled.items[1].request_id
    assert not is_safe(batch)
    assert is_safe(filled)
    assert not batch.items[1].request_id
    assert identified(filled)[0] is filled
    assert identified(learning.ListActionValuesRequest())[0] == learning.ListActionValuesRequest()


async def test_the_same_call_after_an_uncertain_failure_has_the_same_id(
    either: Either, failing: Failing
):
    late = ends(grpc.StatusCode.DEADLINE_EXCEEDED)
    failing.script = [late, late, ends(grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID")]
    async with either(failing.address) as client:
        for _ in range(2):
            with pytest.raises(LotError):
                await client.save_pattern("A task")
        with pytest.raises(LotError, match="REQUEST_INVALID"):
            await client.save_pattern("A task")
        await client.save_pattern("A task")
        await client.save_pattern("A task")

    ids = [request.request_id for request in failing.requests]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids)) == 3


async def test_other_calls_and_ids_of_the_callers_own_are_no_repeats(
    either: Either, failing: Failing
):
    failing.script = [ends(grpc.StatusCode.DEADLINE_EXCEEDED)]
    async with either(failing.address, namespace="a") as client:
        with pytest.raises(LotError):
            await client.save_pattern("A task")
        await client.save_pattern("Another task")
        await client.save_pattern("A task", request_id="mine")
        await client.using(namespace="b").save_pattern("A task")
        await client.using(deadline=60).save_pattern("A task")

    first, other, mine, elsewhere, again = [each.request_id for each in failing.requests]
    assert again == first
    assert mine == "mine"
    assert len({first, other, elsewhere}) == 3


async def test_items_of_a_batch_have_ids_that_a_repeat_keeps():
    calls = FailedCalls()
    batch = patterns.BatchSavePatternsRequest()
    batch.items.add(request_id="mine")
    batch.items.add()
    batch.items.add()
    made = []
    for error in (asyncio.CancelledError, None):
        with suppress(asyncio.CancelledError), calls.identified(batch, "") as request:
            made.append([item.request_id for item in request.items])
            if error is not None:
                raise error
    assert made[0] == made[1]
    assert made[0][0] == "mine"
    assert len(set(made[0])) == 3
