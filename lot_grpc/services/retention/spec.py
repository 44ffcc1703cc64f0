"""The kind ``policy``: the one policy of a namespace."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.services.records.collections import POLICIES, SORT_KEY
from lot_grpc.services.records.policies import policy_from_record, policy_point
from lot_grpc.services.resource_spec import ExportRule, ResourceCollection, ResourceSpec, indexes

POLICY: Final = ResourceSpec(
    kind=ResourceKind.POLICY,
    id_key="",
    point=lambda namespace, _: policy_point(namespace),
    read=policy_from_record,
    metered=False,
    collection=ResourceCollection(
        name=POLICIES,
        description="The policy of a namespace.",
        key="none: a namespace has one",
        indexes=indexes(integer=SORT_KEY),
        # Last, so that no bound of it deletes what is still on its way.
        export=ExportRule(last=True),
    ),
)
