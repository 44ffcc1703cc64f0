"""Quotas on the wire: what callers see of them, and who may change them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.access import ANONYMOUS, Credentials, Grant, Principal, Role
from lot_grpc.domain.quota import Quota
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2, transfer_pb2
from lot_grpc.server.guards import Guards
from tests.server.episodes import SUCCEEDED, started
from tests.server.patterns import saved
from tests.server.service import Lot, serving
from tests.server.test_episodes_stream import opened
from tests.server.wire import failure


async def remember(lot: Lot, count: int, text: str = "note") -> Any:
    return await lot.memories.BatchCreateMemories(
        items=[{"memory": {"content": f"{text} {number}"}} for number in range(count)]
    )


async def test_usage_is_shown_with_the_policy(lot):
    await remember(lot, 3)
    await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 10, "byte_quota": 100_000})
    usage = (await lot.admin.GetNamespacePolicy()).usage
    assert (usage.record_count, usage.record_limit, usage.byte_limit) == (3, 10, 100_000)
    assert 100 < usage.byte_count < 3_000
    listed = await lot.admin.ListNamespaces(include_quota_usage=True, page_size=1000)
    found = {one.namespace: one for one in listed.namespaces}
    assert found[lot.namespace].quota_usage == usage
    plain = await lot.admin.ListNamespaces(page_size=1000)
    assert not any(one.HasField("quota_usage") for one in plain.namespaces)


async def test_without_a_quota_usage_is_counted_only_where_it_is_asked_for(lot):
    await remember(lot, 3)
    assert not (await lot.admin.GetNamespacePolicy()).HasField("usage")
    for count in (3, 5):
        listed = await lot.admin.ListNamespaces(include_quota_usage=True, page_size=1000)
        [found] = [one for one in listed.namespaces if one.namespace == lot.namespace]
        assert (found.quota_usage.record_count, found.quota_usage.record_limit) == (count, 0)
        assert found.quota_usage.byte_count > 0
        await remember(lot, 2)


async def test_a_write_beyond_the_quota_says_what_to_do(lot):
    await remember(lot, 2)
    await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 2})
    failed = await failure(lot.memories.CreateMemory(memory={"content": "one more"}))
    assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
    assert failed.metadata == {
        "namespace": lot.namespace, "unit": "record", "limit": "2", "used": "2", "added": "1",
    }  # fmt: skip
    assert "delete what is no longer needed" in failed.message
    assert "RetryInfo" not in failed.details
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "one more"}))
    assert failed.reason == "QUOTA_EXCEEDED"
    await lot.on(f"{lot.namespace}-other").memories.CreateMemory(memory={"content": "elsewhere"})


async def test_of_a_batch_as_many_are_stored_as_fit(lot):
    await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 3})
    answer = await remember(lot, 5)
    reasons = [one.WhichOneof("result") for one in answer.results]
    assert reasons == ["response"] * 3 + ["error"] * 2
    assert (await lot.admin.GetNamespacePolicy()).usage.record_count == 3
    patterns = await lot.patterns.BatchSavePatterns(items=[{"pattern": {"task": "t"}}])
    assert patterns.results[0].WhichOneof("result") == "error"


async def test_a_quota_below_what_is_stored_only_refuses_growth(lot):
    pattern = await saved(lot, "a task")
    await remember(lot, 4)
    answer = await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 1, "byte_quota": 10})
    assert answer.usage.record_count == 5, "accepted, and said"
    assert (answer.usage.record_limit, answer.usage.byte_limit) == (1, 10)
    assert (await failure(remember_one(lot))).reason == "QUOTA_EXCEEDED"
    listed = (await lot.memories.ListMemories()).memories
    assert len(listed) == 4, "nothing is deleted"
    assert (await lot.patterns.RecallPatterns(query="a task")).hits
    await lot.patterns.UpdatePattern(
        pattern_id=pattern.pattern_id, pattern={"task": "a"}, update_mask={"paths": ["task"]}
    )
    longer = lot.patterns.UpdatePattern(
        pattern_id=pattern.pattern_id, pattern={"task": "a" * 999}, update_mask={"paths": ["task"]}
    )
    assert (await failure(longer)).metadata["unit"] == "byte"
    for one in listed:
        await lot.memories.DeleteMemory(memory_id=one.memory_id)
    after = (await lot.admin.GetNamespacePolicy()).usage
    assert after.record_count == 1
    assert after.byte_count < answer.usage.byte_count
    cleared = await lot.admin.UpdateNamespacePolicy(policy={}, update_mask={"paths": ["*"]})
    assert not cleared.HasField("usage")
    await remember_one(lot)


def remember_one(lot: Lot) -> Any:
    return lot.memories.CreateMemory(memory={"content": "one more"})


async def test_a_dry_run_says_what_would_apply(lot):
    await remember(lot, 2)
    dry = await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 1}, dry_run=True)
    assert (dry.usage.record_count, dry.usage.record_limit) == (2, 1)
    await remember_one(lot)


async def test_presets_do_not_touch_quotas(lot):
    await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 7, "byte_quota": 8})
    for preset in (pb.POLICY_PRESET_BOUNDED, pb.POLICY_PRESET_UNLIMITED):
        policy = (await lot.admin.UpdateNamespacePolicy(preset=preset)).policy
        assert (policy.record_quota, policy.byte_quota) == (7, 8)


@pytest.mark.parametrize("field", ["record_quota", "byte_quota"])
async def test_a_quota_is_no_negative_number(lot, field):
    failed = await failure(lot.admin.UpdateNamespacePolicy(policy={field: -1}))
    assert failed.fields == {f"policy.{field}": "int64.gte"}


async def test_a_stream_ends_at_the_event_that_is_too_much(lot):
    await started(lot, episode_id="e")
    await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 3})
    stream = await opened(lot)
    assert (await stream.send([1, 2])).last_sequence == 2
    failed = await failure(stream.send([3]))
    assert failed.reason == "QUOTA_EXCEEDED"
    ended = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, summary="s" * 99)
    assert ended.episode.event_count == 2, "it can be ended, and holds what was acknowledged"


# --- who may change them ----------------------------------------------------------------------


class Named:
    """``operator`` is admin of everything, anyone else of one namespace."""

    def __init__(self) -> None:
        self.namespace = ""

    async def authenticate(self, credentials: Credentials) -> Principal:
        [name] = credentials.authorizations
        if name == "operator":
            return replace(ANONYMOUS, id=name, name=name)
        return Principal(name, name, (Grant(Role.ADMIN, self.namespace),), self.namespace)


class As:
    """Calls as one principal."""

    def __init__(self, stub: Any, name: str, namespace: str) -> None:
        self._stub, self._name, self._namespace = stub, name, namespace

    def __getattr__(self, method: str) -> Any:
        service = self._stub._service
        kind = service.methods_by_name[method].input_type._concrete_class
        answer = service.methods_by_name[method].output_type._concrete_class
        call = self._stub._channel.unary_unary(
            f"/{service.full_name}/{method}",
            request_serializer=kind.SerializeToString,
            response_deserializer=answer.FromString,
        )
        metadata = (("authorization", self._name),)
        return lambda **fields: call(kind(namespace=self._namespace, **fields), metadata=metadata)


async def test_only_an_admin_of_all_namespaces_changes_a_quota():
    named = Named()
    async with serving(guards=Guards(authenticator=named)) as lot:
        named.namespace = lot.namespace
        operator, tenant = (As(lot.admin, one, lot.namespace) for one in ("operator", "tenant"))
        await operator.UpdateNamespacePolicy(policy={"record_quota": 5})
        for fields in (
            {"policy": {"record_quota": 6}},
            {"policy": {"byte_quota": 6}},
            {"policy": {}, "update_mask": {"paths": ["*"]}},
            {"policy": {"record_quota": 6}, "dry_run": True},
        ):
            failed = await failure(tenant.UpdateNamespacePolicy(**fields))
            assert (failed.code, failed.reason) == ("PERMISSION_DENIED", "ROLE_REQUIRED"), fields
            assert failed.metadata["namespace"] == "*"
        policy = (await tenant.UpdateNamespacePolicy(policy={"max_patterns": 3})).policy
        assert (policy.record_quota, policy.max_patterns) == (5, 3)
        same = {"record_quota": 5, "max_patterns": 4}
        assert (await tenant.UpdateNamespacePolicy(policy=same)).policy.max_patterns == 4
        confirmed = lot.namespace
        for kinds in ([], [resource_kind_pb2.RESOURCE_KIND_POLICY]):
            failed = await failure(
                tenant.ClearNamespace(confirm_namespace=confirmed, resource_kinds=kinds)
            )
            assert failed.reason == "ROLE_REQUIRED", "a clear would lift it"
        memories = [resource_kind_pb2.RESOURCE_KIND_MEMORY]
        await tenant.ClearNamespace(confirm_namespace=confirmed, resource_kinds=memories)
        await operator.ClearNamespace(confirm_namespace=confirmed)
        assert (await tenant.GetNamespacePolicy()).policy.record_quota == 0
        await tenant.ClearNamespace(confirm_namespace=confirmed)


async def test_an_import_changes_no_quota_either():
    named = Named()
    async with serving(guards=Guards(authenticator=named)) as lot:
        named.namespace = lot.namespace
        operator = As(lot.admin, "operator", lot.namespace)
        await operator.UpdateNamespacePolicy(policy={"record_quota": 5, "max_patterns": 9})
        metadata = (("authorization", "operator"),)
        export = lot.channel.unary_stream(
            "/lot.v1.AdminService/Export",
            request_serializer=transfer_pb2.ExportRequest.SerializeToString,
            response_deserializer=transfer_pb2.ExportResponse.FromString,
        )(transfer_pb2.ExportRequest(namespace=lot.namespace), metadata=metadata)
        messages = [one async for one in export]
        records = [record for one in messages for record in one.records]
        assert len(records) == 1
        await operator.UpdateNamespacePolicy(policy={"record_quota": 3})

        async def imported(name: str) -> Any:
            stream = lot.channel.stream_stream(
                "/lot.v1.AdminService/Import",
                request_serializer=transfer_pb2.ImportRequest.SerializeToString,
                response_deserializer=transfer_pb2.ImportResponse.FromString,
            )(metadata=(("authorization", name),))
            request = transfer_pb2.ImportRequest(
                namespace=lot.namespace,
                header=messages[0].header,
                records=records,
                conflict_policy=transfer_pb2.IMPORT_CONFLICT_POLICY_OVERWRITE,
            )
            await stream.write(request)
            await stream.done_writing()
            return await stream.read()

        failed = await failure(imported("tenant"))
        assert failed.reason == "ROLE_REQUIRED"
        assert (await operator.GetNamespacePolicy()).policy.record_quota == 3
        assert (await imported("operator")).imported_count == 1
        assert (await operator.GetNamespacePolicy()).usage.record_limit == 5


async def test_the_default_of_the_server_applies_where_a_policy_has_none():
    async with serving(quota=Quota(records=2)) as lot:
        await remember_one(lot)
        assert (await lot.admin.GetNamespacePolicy()).usage.record_limit == 2
        await lot.admin.UpdateNamespacePolicy(policy={"record_quota": 3})
        await lot.memories.CreateMemory(memory={"content": "2"})
        await lot.memories.CreateMemory(memory={"content": "3"})
        failed = await failure(lot.memories.CreateMemory(memory={"content": "4"}))
        assert failed.metadata["limit"] == "3"
