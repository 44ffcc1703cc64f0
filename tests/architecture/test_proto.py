"""The contract keeps its own rules, and the generated code is the contract's."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodOptions,
)

from lot_grpc.domain import errors
from lot_grpc.pb.lot import v1
from lot_grpc.pb.lot.v1 import error_reason_pb2

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto"
SERVER_COPY = ROOT / "lot_grpc" / "pb"
CLIENT_COPY = ROOT / "clients" / "python" / "src" / "lot_client" / "pb"

READING_VERBS = (
    "Analyze",
    "Check",
    "Embed",
    "Export",
    "Find",
    "Get",
    "List",
    "Recall",
    "Replay",
    "Search",
    "Watch",
)

STARTUP_REASONS = {
    "KNOWLEDGE_PACK_INVALID",
    "REDACTION_RULES_INVALID",
    "STARTUP",
    "SERVING_ENDED",
    "STORE_LOCKED",
    "MODEL_UNAVAILABLE",
    "SCHEMA_VERSION_MISMATCH",
}
"""Reasons of a server that refuses to start; they never reach a client."""


def descriptors() -> dict[str, FileDescriptorProto]:
    """Files of the contract by path, as the generated code has them."""
    files: dict[str, FileDescriptorProto] = {}
    for module in pkgutil.iter_modules(v1.__path__):
        if module.name.endswith("_pb2"):
            file = FileDescriptorProto()
            importlib.import_module(f"{v1.__name__}.{module.name}").DESCRIPTOR.CopyToProto(file)
            files[file.name] = file
    return files


def methods() -> list[MethodDescriptor]:
    found: list[MethodDescriptor] = []
    for path in sorted(descriptors()):
        if path.endswith("_service.proto"):
            name = Path(path).stem
            module = importlib.import_module(f"{v1.__name__}.{name}_pb2")
            for service in module.DESCRIPTOR.services_by_name.values():
                found += service.methods
    return found


def buf(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("buf", path=str(Path(sys.executable).parent)) or shutil.which("buf")
    assert program, "buf is missing: pip install buf-bin==1.75.0 (it is in the dev extra)"
    return subprocess.run([program, *arguments], cwd=PROTO, capture_output=True, check=False)


def plain(file: FileDescriptorProto) -> FileDescriptorProto:
    """buf adds JSON names, which follow from the names, and a note of its own on each file."""

    def strip(message: DescriptorProto) -> None:
        for field in [*message.field, *message.extension]:
            field.ClearField("json_name")
        for nested in message.nested_type:
            strip(nested)

    for message in file.message_type:
        strip(message)
    for field in file.extension:
        field.ClearField("json_name")
    file.DiscardUnknownFields()
    return file


def reasons_of(kind: type[errors.LotError]) -> Iterator[str]:
    yield kind.reason
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("lot_grpc."):
            yield from reasons_of(subclass)


def test_the_linter_has_nothing_to_say():
    done = buf("lint")

    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_the_files_are_formatted():
    done = buf("format", "-d", "--exit-code")

    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_the_generated_code_is_that_of_the_proto_files():
    done = buf("build", "--path", "lot", "--exclude-imports", "--exclude-source-info", "-o", "-")
    assert done.returncode == 0, done.stderr.decode()

    written = {file.name: plain(file) for file in FileDescriptorSet.FromString(done.stdout).file}

    generated = {name: plain(file) for name, file in descriptors().items()}
    assert generated.keys() == written.keys()
    stale = sorted(name for name in written if generated[name] != written[name])
    assert not stale, f"run proto/generate.py: {stale}"


def test_server_and_client_have_the_same_generated_code():
    def texts(folder: Path, package: str) -> dict[str, str]:
        return {
            path.relative_to(folder).as_posix(): path.read_text().replace(
                f"from {package}.", "from "
            )
            for path in folder.rglob("*.py*")
            if path.suffix != ".pyc"
        }

    assert texts(SERVER_COPY, "lot_grpc.pb") == texts(CLIENT_COPY, "lot_client.pb")


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.name)
def test_every_request_says_its_namespace_first(method: MethodDescriptor):
    first = method.input_type.fields_by_number.get(1)

    assert first is not None
    assert (first.name, first.type) == ("namespace", FieldDescriptor.TYPE_STRING)


@pytest.mark.parametrize("method", methods(), ids=lambda method: method.name)
def test_reads_and_only_reads_are_marked_as_free_of_side_effects(method: MethodDescriptor):
    marked = method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS

    assert marked == method.name.startswith(READING_VERBS)


def test_every_reason_shows_a_sample_of_itself():
    text = (PROTO / "lot" / "v1" / "error_reason.proto").read_text()
    blocks = re.findall(r"((?:^  //.*\n)+)  ERROR_REASON_(\w+) = (\d+);", text, re.MULTILINE)
    assert len(blocks) == len(error_reason_pb2.ErrorReason.keys())

    for comment, name, number in blocks:
        if number == "0":
            continue
        sample = "".join(re.findall(r"^  // {5}(.*)\n", comment, re.MULTILINE))
        info = json.loads(sample)
        assert info["reason"] == name
        assert info["domain"] == "lot.v1"
        assert isinstance(info["metadata"], dict)
        assert all(isinstance(value, str) for value in info["metadata"].values()), name


def test_every_reason_the_server_gives_is_in_the_contract():
    names = set(error_reason_pb2.ErrorReason.keys())
    promised = {name.removeprefix("ERROR_REASON_") for name in names} - {"UNSPECIFIED"}

    given = set(reasons_of(errors.LotError)) - STARTUP_REASONS

    assert given <= promised, f"not in error_reason.proto: {sorted(given - promised)}"
