"""Reflection, as grpcurl (v1alpha) and buf curl (v1) ask for it."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2

from lot_grpc.server.reflection import NAMES
from tests.server.wire import wire

Request = reflection_pb2.ServerReflectionRequest


async def ask(channel, name, request):
    call = channel.stream_stream(
        f"/{name}/ServerReflectionInfo",
        request_serializer=Request.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )(iter([request]))
    return await call.read()


@pytest.mark.parametrize("name", NAMES)
async def test_public_services_are_listed_and_nothing_else(name):
    async with wire() as it:
        answer = await ask(it.channel, name, Request(list_services=""))
        assert {each.name for each in answer.list_services_response.service} == {
            "lot.v1.PatternService",
            "lot.v1.EpisodeService",
            "grpc.health.v1.Health",
            *NAMES,
        }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("symbol", "file"),
    [
        ("lot.v1.PatternService", "lot/v1/pattern_service.proto"),
        ("lot.v1.PatternService.SavePattern", "lot/v1/pattern_service.proto"),
        ("lot.v1.EpisodeService.RecordEvents", "lot/v1/episode_service.proto"),
        ("lot.v1.Pattern", "lot/v1/pattern.proto"),
    ],
)
async def test_services_methods_and_messages_are_described(name, symbol, file):
    async with wire() as it:
        answer = await ask(it.channel, name, Request(file_containing_symbol=symbol))
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(raw).name
            for raw in answer.file_descriptor_response.file_descriptor_proto
        ]
        assert file in files
        assert "buf/validate/validate.proto" in files, "whatever it imports comes along"


@pytest.mark.parametrize("name", NAMES)
async def test_both_versions_of_reflection_describe_themselves(name):
    package = name.rpartition(".")[0]
    async with wire() as it:
        answer = await ask(it.channel, NAMES[0], Request(file_containing_symbol=name))
        [raw] = answer.file_descriptor_response.file_descriptor_proto
        file = descriptor_pb2.FileDescriptorProto.FromString(raw)
        assert (file.package, file.options.deprecated) == (package, name == NAMES[1])
        [method] = file.service[0].method
        assert method.input_type == f".{package}.ServerReflectionRequest"


@pytest.mark.parametrize("symbol", ["lot.v1.PatternService.Nothing", "lot.v1.No.Thing", "x", ""])
async def test_a_symbol_that_is_not_there_is_not_found(symbol):
    async with wire() as it:
        answer = await ask(it.channel, NAMES[0], Request(file_containing_symbol=symbol))
        assert answer.error_response.error_code == 5
