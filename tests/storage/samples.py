from __future__ import annotations

import math
import uuid

from lot_grpc.ports import CollectionSpec, Index, Record

SPEC = CollectionSpec("samples", dense={"text": 4}, indexes={"n": Index.INTEGER})


def sample_id(n: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(n)))


def sample(n: int) -> Record:
    return Record(sample_id(n), "a", {"n": n}, {"text": [math.cos(n), math.sin(n), 0.0, 1.0]})
