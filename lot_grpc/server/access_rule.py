"""What an RPC needs of its caller, as declared in the contract."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.descriptor import MethodDescriptor

from lot_grpc.domain.access import Role
from lot_grpc.pb.lot.v1 import access_pb2


class Rule(NamedTuple):
    """What an RPC needs (``lot.v1.access``)."""

    role: Role
    scope: int
    server_scope_field: str
    read_namespaces_field: str

    @classmethod
    def of(cls, descriptor: MethodDescriptor) -> Rule | None:
        """The rule that an RPC declares; None if it has none, as those of a library."""
        options = descriptor.GetOptions()
        if not options.HasExtension(access_pb2.access):
            return None
        declared = options.Extensions[access_pb2.access]
        return cls(
            Role(declared.role),
            declared.scope,
            declared.server_scope_field,
            declared.read_namespaces_field,
        )
