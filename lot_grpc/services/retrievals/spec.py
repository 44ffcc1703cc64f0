"""The kind ``retrieval``: what recalls were asked and what they showed."""

from __future__ import annotations

from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import RetrievalNotFoundError
from lot_grpc.ports import Equals
from lot_grpc.services.records.collections import OUTCOMES, RETRIEVALS, SORT_KEY
from lot_grpc.services.records.resource_refs import RESOURCE_KIND
from lot_grpc.services.records.retrievals import (
    EPOCH,
    HOLDOUT,
    PRINCIPAL,
    SHOWN,
    VECTOR,
    retrieval_conditions,
    retrieval_from_record,
    retrieval_point,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    ExportRule,
    RecordSet,
    ResourceCollection,
    ResourceSpec,
    WatchRule,
    indexes,
)

RETRIEVAL: Final = ResourceSpec(
    kind=ResourceKind.RETRIEVAL,
    id_key="retrieval_id",
    point=retrieval_point,
    read=retrieval_from_record,
    conditions=retrieval_conditions,
    missing=RetrievalNotFoundError,
    collection=ResourceCollection(
        name=RETRIEVALS,
        description="The query of a recall and what it showed.",
        expires=True,
        indexes=CHANGE_INDEXES
        | indexes(keyword=f"method {SHOWN} {PRINCIPAL}", integer=SORT_KEY, boolean=HOLDOUT),
        # The vector is of this store's model, and is not searched.
        export=ExportRule(dropped=frozenset({VECTOR, EPOCH})),
    ),
    watch=WatchRule(only_if_named=True),
    # Recalls write them by themselves, and a read must always work.
    metered=False,
    # Outcomes that name only a retrieval, since nothing of it was used.
    cleared_along=(RecordSet(OUTCOMES, (Equals(RESOURCE_KIND, str(ResourceKind.RETRIEVAL)),)),),
)
