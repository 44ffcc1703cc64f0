"""Every update of the contract: a path of the mask sets just that path, at every depth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from tests.server.service import SERVICES, Lot
from tests.server.wire import failure
from tests.unit.filled import set_field

PROTO = Path(__file__).parents[2] / "proto" / "lot" / "v1"

UPDATES = {
    method.name: (service.name, method)
    for service in SERVICES.values()
    for method in service.methods
    if "update_mask" in method.input_type.fields_by_name
}
MOVED_BY_EVERY_EDIT = ("etag", "update_time")
DERIVED = {
    "ErrorSolution": ("signature", "outcomes", "origin"),
    "Memory": ("origin",),
    "Pattern": ("origin",),
}
"""Fields that follow others, as the origin follows the text; their own tests are elsewhere."""
BASES = [
    ("UpdateMemory", {"details": "project"}),
    ("UpdateMemory", {"details": "conversation_summary"}),
    ("UpdatePattern", {}),
    ("UpdateErrorSolution", {}),
    ("UpdateNamespacePolicy", {}),
]


def thing_field(method: Any) -> Any:
    """The field of a request that holds the new values."""
    return next(
        field
        for field in method.input_type.fields
        if field.message_type is not None and not field.message_type.full_name.startswith("google.")
    )


def output_only(kind: Any) -> set[str]:
    """The fields that the contract calls output only."""
    text = "".join(path.read_text() for path in PROTO.glob("*.proto"))
    body = re.search(rf"^message {kind.name} {{.*?^}}", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    fields = re.findall(
        r"((?:^ *//[^\n]*\n)+) *(?:optional |repeated )?[\w.<>, ]+ (\w+) = ", body[0], re.MULTILINE
    )
    return {name for comment, name in fields if "Output only" in comment}


def leaves(kind: Any, skip: set[str], prefix: str = "") -> Iterator[str]:
    for field in kind.fields:
        below = field.message_type
        if prefix + field.name in skip:
            continue
        if below is None or field.is_repeated or below.full_name.startswith("google."):
            yield prefix + field.name
        else:
            yield from leaves(below, skip, f"{prefix}{field.name}.")


def sample(kind: Any, oneofs: dict[str, str], n: int) -> Any:
    """A resource with every field set, in the way number ``n``."""
    message = kind._concrete_class()
    for field in kind.fields:
        oneof = field.containing_oneof
        if oneof is None or field.name == oneofs.get(oneof.name, oneof.fields[0].name):
            set_field(message, field.name, n)
            if field.message_type is not None and field.message_type.name == "Timestamp":
                late = field.name == "valid_until"  # after the beginning
                getattr(message, field.name).seconds = 4_000_000_000 + 1_000 * late + n
    for name, value in {"kind": 0, "code_kind": 1 + n, "supersedes": f"old-{n}"}.items():
        if name in kind.fields_by_name:  # what a kind and a lineage make of each other
            setattr(message, name, value)
    if "code_kind" in kind.fields_by_name:
        message.kind = 2
    for name in output_only(kind):
        message.ClearField(name)
    return message


async def stored(lot: Lot, rpc: str, thing: Any) -> Any:
    """Store a resource as the first of its name; what to name it by."""
    match rpc:
        case "UpdateMemory":
            await lot.memories.DeleteMemory(memory_id="x", allow_missing=True)
            for n in range(2):
                replaced = {"content": f"old {n}"}
                await lot.memories.CreateMemory(memory=replaced, memory_id=f"old-{n}")
            return (await lot.memories.CreateMemory(memory=thing, memory_id="x")).memory
        case "UpdatePattern":
            await lot.patterns.DeletePattern(pattern_id="x", allow_missing=True)
            for n in range(2):
                old = {"task": f"old {n}"}
                await lot.patterns.SavePattern(pattern=old, pattern_id=f"old-{n}")
            return (await lot.patterns.SavePattern(pattern=thing, pattern_id="x")).pattern
        case "UpdateErrorSolution":
            await lot.memories.DeleteErrorSolution(error_solution_id="x", allow_missing=True)
            return (
                await lot.memories.SaveErrorSolution(error_solution=thing, error_solution_id="x")
            ).error_solution
        case "UpdateNamespacePolicy":
            return (
                await lot.admin.UpdateNamespacePolicy(policy=thing, update_mask={"paths": ["*"]})
            ).policy
    raise AssertionError(f"{rpc} is new: say here how its resource is stored")


async def updated(lot: Lot, rpc: str, thing: Any, *paths: str) -> Any:
    service, method = UPDATES[rpc]
    field = thing_field(method).name
    named = {name: "x" for name in (f"{field}_id",) if name in method.input_type.fields_by_name}
    stub = getattr(lot, {"MemoryService": "memories"}.get(service, service[:-7].lower()))
    answer = await getattr(stub, rpc)(**{field: thing}, update_mask={"paths": paths}, **named)
    return getattr(answer, field)


def at(message: Any, path: str) -> Any:
    for name in path.split("."):
        message = getattr(message, name)
    return message


def with_path(message: Any, other: Any, path: str) -> Any:
    """A copy in which this path, and no other, is as in the other message."""
    copy = type(message)()
    copy.CopyFrom(message)
    *outer, last = path.split(".")
    target, source = copy, other
    for name in outer:
        target, source = getattr(target, name), getattr(source, name)
    target.ClearField(last)
    field = source.DESCRIPTOR.fields_by_name[last]
    if not field.has_presence or source.HasField(last):
        FieldMask(paths=[last]).MergeMessage(source, target)
    return copy


def bare(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    for name in (*MOVED_BY_EVERY_EDIT, *DERIVED.get(message.DESCRIPTOR.name, ())):
        copy.ClearField(name)
    return copy


def test_every_update_is_tried() -> None:
    assert {rpc for rpc, _ in BASES} == set(UPDATES)


@pytest.mark.parametrize(("rpc", "oneofs"), BASES, ids=str)
async def test_each_path_sets_just_itself(lot: Lot, rpc: str, oneofs: dict[str, str]) -> None:
    kind = thing_field(UPDATES[rpc][1]).message_type
    first, second = sample(kind, oneofs, 0), sample(kind, oneofs, 1)
    absent = {
        one.name
        for oneof in kind.oneofs
        for one in oneof.fields
        if len(oneof.fields) > 1 and not first.HasField(one.name)
    }
    # Which kind a thing is decides what else it may have: it is set on its own in other tests.
    paths = list(leaves(kind, output_only(kind) | absent | {"kind", "origin"}))
    assert len(paths) > 9
    for masked in (True, False):
        for path in paths:
            before = await stored(lot, rpc, first)
            given = second if masked else with_path(type(second)(), second, path)
            after = await updated(lot, rpc, given, *([path] if masked else []))
            # What was given back is what the server makes of a value: a normal form, or a default.
            want = with_path(bare(before), bare(after), path)
            assert bare(after) == want, (path, masked)
            if at(first, path) != at(second, path):
                assert bare(after) != bare(before), (path, masked)


@pytest.mark.parametrize("rpc", list(UPDATES))
async def test_a_path_that_is_none_is_refused_with_those_that_there_are(lot: Lot, rpc: str) -> None:
    kind = thing_field(UPDATES[rpc][1]).message_type
    thing = sample(kind, {}, 0)
    before = await stored(lot, rpc, thing)
    for path in ("nothing", "etag", f"{kind.fields[1].name}.below", "metadata.key", ".", ""):
        failed = await failure(updated(lot, rpc, thing, path))
        assert failed.fields == {"update_mask": "update_mask.path"}, path
        known = failed.message.partition(f"valid paths of {kind.name}: *, ")[2].split(", ")
        assert set(leaves(kind, output_only(kind))) <= set(known)
        assert not output_only(kind) & set(known)
    assert await stored(lot, rpc, thing) is not None
    assert (await updated(lot, rpc, thing, "*")) is not None
    assert before is not None


async def test_details_that_are_set_but_empty_change_nothing_that_is_there(lot: Lot) -> None:
    project = {"path": "/x", "tech_stack": ["go"], "status": "paused"}
    await lot.memories.CreateMemory(memory={"content": "c", "project": project}, memory_id="x")
    status = await updated(lot, "UpdateMemory", {"project": {"status": "active"}})
    assert (status.project.path, list(status.project.tech_stack)) == ("/x", ["go"])
    assert status.project.status == "active"
    assert await updated(lot, "UpdateMemory", {"project": {}}) == status
    cleared = await updated(lot, "UpdateMemory", {}, "project.path", "project.tech_stack")
    assert (cleared.project.path, list(cleared.project.tech_stack)) == ("", [])
    whole = await updated(lot, "UpdateMemory", {"project": {"path": "/y"}}, "project")
    assert (whole.project.path, whole.project.status) == ("/y", "active")
    assert not (await updated(lot, "UpdateMemory", {}, "project")).HasField("project")
    still = await updated(lot, "UpdateMemory", {}, "project.status")
    assert not still.HasField("project"), "nothing to clear"
    back = await updated(lot, "UpdateMemory", {"project": {}})
    assert back.HasField("project")
