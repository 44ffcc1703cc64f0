"""What each RPC needs, as the contract declares it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from lot_grpc.domain.access import Role
from lot_grpc.pb.lot.v1 import access_pb2
from tests.architecture.test_proto import methods

METHODS = {f"{one.containing_service.name}.{one.name}": one for one in methods()}

ADMIN = {
    "AdminService.ClearNamespace",
    "AdminService.EraseSubject",
    "AdminService.Compact",
    "AdminService.Import",
    "AdminService.Reindex",
    "AdminService.ReviewRecords",
    "AdminService.SeedKnowledge",
    "AdminService.UpdateNamespacePolicy",
}
SERVER = {"AdminService.Compact", "AdminService.Reindex"}
ANY = {
    "AdminService.CheckReady",
    "AdminService.Embed",
    "AdminService.GetServerInfo",
    "AdminService.ListNamespaces",
}
SERVER_IF = {
    "AdminService.Export": "all_namespaces",
    "AdminService.Import": "keep_namespaces",
}
ALSO_READS = {"PatternService.ExtractPatterns": "namespaces"}
"""What is not obvious. Another RPC is read by readers and written by writers, in its namespace; one
that is added here needs thought: what of other namespaces does its answer show?"""


def rule_of(method: MethodDescriptor) -> access_pb2.AccessRule:
    rule: access_pb2.AccessRule = method.GetOptions().Extensions[access_pb2.access]
    return rule


@pytest.mark.parametrize("name", METHODS)
def test_every_rpc_declares_what_it_needs(name):
    method = METHODS[name]

    assert method.GetOptions().HasExtension(access_pb2.access)
    assert rule_of(method).role in [*Role]
    assert rule_of(method).scope in access_pb2.AccessScope.values()


@pytest.mark.parametrize("name", METHODS)
def test_reads_need_a_reader_and_writes_a_writer_unless_listed(name):
    options = METHODS[name].GetOptions()
    reads = options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS

    role = Role.ADMIN if name in ADMIN else Role.READER if reads else Role.WRITER

    assert Role(rule_of(METHODS[name]).role) is role


@pytest.mark.parametrize("name", METHODS)
def test_the_role_is_needed_in_the_namespace_of_the_request_unless_listed(name):
    scope = access_pb2.ACCESS_SCOPE_UNSPECIFIED
    if name in SERVER:
        scope = access_pb2.ACCESS_SCOPE_SERVER
    elif name in ANY:
        scope = access_pb2.ACCESS_SCOPE_ANY

    assert rule_of(METHODS[name]).scope == scope
    assert rule_of(METHODS[name]).server_scope_field == SERVER_IF.get(name, "")
    assert rule_of(METHODS[name]).read_namespaces_field == ALSO_READS.get(name, "")


def below(message: Descriptor, path: str = "", depth: int = 6) -> Iterator[str]:
    """The fields of a message and of the messages in it that name namespaces."""
    for field in message.fields:
        if "namespace" in field.name:
            yield f"{path}{field.name}"
        if depth and field.message_type is not None:
            yield from below(field.message_type, f"{path}{field.name}.", depth - 1)


@pytest.mark.parametrize("name", METHODS)
def test_every_field_that_names_namespaces_is_checked(name):
    fields = METHODS[name].input_type.fields_by_name
    wide, further = (
        rule_of(METHODS[name]).server_scope_field,
        rule_of(METHODS[name]).read_namespaces_field,
    )

    found = {
        field
        for field in below(METHODS[name].input_type)
        # Of a record it is output only, and an import asks the first message.
        if not field.endswith(".namespace")
    }

    assert found - {"confirm_namespace"} == {"namespace", wide, further} - {""}
    assert not wide or fields[wide].type == FieldDescriptor.TYPE_BOOL
    if further:
        assert fields[further].type == FieldDescriptor.TYPE_STRING
        assert fields[further].is_repeated
