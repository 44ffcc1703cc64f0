"""Reflection for grpcurl, buf curl and the like: v1 and v1alpha, with methods as symbols.

The library serves v1alpha only (grpc/grpc#38576) and does not find methods (grpc/grpc#34743). The
messages of both versions are the same on the wire, so one handler serves both names; both are
listed and described, v1 by the contract of v1alpha under its own name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer

SERVICE: Final = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]
NAMES: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


def _describe_v1() -> None:
    """Add the contract of v1 to the descriptor pool."""
    try:
        Default().FindServiceByName(NAMES[0])
    except KeyError:
        file = FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        file.name, file.package = _in_v1(file.name), _in_v1(file.package)
        file.options.ClearField("deprecated")
        file.options.java_package = _in_v1(file.options.java_package)
        file.options.go_package = _in_v1(file.options.go_package)
        for message in file.message_type:
            for field in message.field:
                if field.type_name:
                    field.type_name = _in_v1(field.type_name)
        for method in file.service[0].method:
            method.input_type = _in_v1(method.input_type)
            method.output_type = _in_v1(method.output_type)
        Default().AddSerializedFile(file.SerializeToString())


def _in_v1(name: str) -> str:
    return name.replace("v1alpha", "v1")


class _MethodFindingPool:
    """A descriptor pool that also finds ``package.Service.Method``."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802 - its name
        """The file of a message, enum, service, field or method."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service_name, _, method = symbol.rpartition(".")
            service = self._pool.FindServiceByName(service_name)
            return service.methods_by_name[method].containing_service.file


def servicer(service_names: Iterable[str]) -> ReflectionServicer:
    """A servicer for each of ``NAMES``. It lists ``service_names`` and reflection itself."""
    _describe_v1()
    return ReflectionServicer([*service_names, *NAMES], _MethodFindingPool(Default()))
