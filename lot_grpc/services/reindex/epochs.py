"""Which named vectors belong to which model.

A store begins with epoch 0, and each reindex to another model makes the next one. The dense vectors
of an epoch have their own names in the store (``text``, later ``text-1``), so that those of two
models coexist and no search can mix them. Terms (``bm25``) need no model and have the same name in
all epochs.
"""

from __future__ import annotations

from dataclasses import replace

from lot_grpc.ports import AllOf, CollectionSpec, Condition, HasVector, Not, OneOf, Where


def stored_name(name: str, epoch: int) -> str:
    """What the store calls the dense vector ``name`` of an epoch."""
    return name if epoch == 0 else f"{name}-{epoch}"


def stored_spec(spec: CollectionSpec, epoch: int) -> CollectionSpec:
    """The spec with the dense vectors of an epoch."""
    return replace(
        spec,
        dense={stored_name(name, epoch): size for name, size in spec.dense.items()},
        multi={stored_name(name, epoch): size for name, size in spec.multi.items()},
    )


def stored_where(where: Where, dense: frozenset[str], epoch: int) -> Where:
    """Conditions with the names of an epoch; ``dense`` are the plain ones."""
    if epoch == 0:
        return where
    return [_stored(condition, dense, epoch) for condition in where]


def _stored(condition: Condition, dense: frozenset[str], epoch: int) -> Condition:
    match condition:
        case HasVector(name):
            return HasVector(stored_name(name, epoch) if name in dense else name)
        case Not(inner):
            return Not(_stored(inner, dense, epoch))
        case AllOf(conditions):
            return AllOf(tuple(_stored(one, dense, epoch) for one in conditions))
        case OneOf(conditions):
            return OneOf(tuple(_stored(one, dense, epoch) for one in conditions))
        case _:
            return condition
