"""Namespace policy ⇄ Record."""

from __future__ import annotations

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.policy import NamespacePolicy, StoredPolicy
from lot_grpc.ports import Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec

_POLICY = FieldCodec(NamespacePolicy)
_STORED = FieldCodec(StoredPolicy, sparse=False, skip={"namespace", "policy"})


def policy_point(namespace: str) -> str:
    """The point id of the one policy of a namespace."""
    return point_id(namespace, "policy")


def policy_record(stored: StoredPolicy, sort_key: int) -> Record:
    """Encode the whole record."""
    payload = {**_POLICY.write(stored.policy), **_STORED.write(stored), SORT_KEY: sort_key}
    return Record(policy_point(stored.namespace), stored.namespace, payload)


def policy_from_record(record: Record) -> StoredPolicy:
    """Decode the policy of a record."""
    payload = record.payload
    return _STORED.read(payload, namespace=record.namespace, policy=_POLICY.read(payload))
