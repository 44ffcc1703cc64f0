"""What the validator sees of a request: all but what is inside Structs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from google.protobuf.descriptor import FieldDescriptor

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_service_pb2,
    pattern_service_pb2,
    transfer_pb2,
)
from lot_grpc.server.checking import Checker
from lot_grpc.server.views import Views


def test_a_view_reads_the_same_bytes_with_structs_closed() -> None:
    request = episode_service_pb2.RecordEventsRequest(episode_id="e")
    event = request.events.add(sequence=7, event_type="tool_call")
    event.data.update({"tool": "shell"})
    view = Views().of(episode_service_pb2.RecordEventsRequest)
    seen = view.FromString(request.SerializeToString())
    assert seen.episode_id == "e"  # type: ignore[attr-defined]
    assert seen.events[0].sequence == 7  # type: ignore[attr-defined]
    assert seen.events[0].data == event.data.SerializeToString()  # type: ignore[attr-defined]


def test_a_type_without_structs_needs_no_view() -> None:
    assert not Views.needed(admin_service_pb2.ClearNamespaceRequest)
    assert Views.needed(episode_service_pb2.RecordEventsRequest)


def test_a_view_holds_whichever_type_of_its_file_was_checked_first() -> None:
    """The validator keeps to the first descriptors of a file; an Export is checked before it."""
    Checker(transfer_pb2.ExportRequest)
    check = Checker(transfer_pb2.ImportRequest)
    request = transfer_pb2.ImportRequest()
    request.records.add().pattern.metadata.update({"a": 1})
    assert check(request.SerializeToString()) == request


def test_a_type_that_contains_itself_has_a_view() -> None:
    views = Views()
    for name, kind in vars(pattern_service_pb2).items():
        if name.endswith(("Request", "Response")):
            assert views.of(kind).DESCRIPTOR.full_name == kind.DESCRIPTOR.full_name


def test_rules_hold_beside_a_struct_and_the_message_keeps_it() -> None:
    check = Checker(episode_service_pb2.RecordEventsRequest)
    request = episode_service_pb2.RecordEventsRequest(episode_id="e")
    request.events.add(sequence=1, event_type="tool_call").data.update({"a": [1.5, {"b": "c"}]})
    assert check(request.SerializeToString()) == request


@pytest.mark.parametrize("plain_first", [True, False])
def test_types_with_and_without_a_view_are_checked_in_any_order(plain_first) -> None:
    """In a process of its own, as a validator remembers which of them it saw first."""
    code = f"""
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.server.checking import Checker
kinds = [pb.GetPatternRequest(pattern_id="p"), pb.SavePatternRequest(pattern={{"task": "t"}})]
for request in kinds if {plain_first} else kinds[::-1]:
    assert Checker(type(request))(request.SerializeToString()) == request
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_rule_speaks_of_a_struct() -> None:
    """A Struct with a rule stays open; then a view would save nothing for its type."""
    for module in (episode_service_pb2, pattern_service_pb2):
        for message in module.DESCRIPTOR.message_types_by_name.values():
            for field in message.fields:
                _no_rule(field)


def _no_rule(field: FieldDescriptor) -> None:
    kind = field.message_type
    if kind is not None and kind.full_name == "google.protobuf.Struct":
        assert not field.GetOptions().ByteSize(), field.full_name
