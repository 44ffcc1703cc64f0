"""The layers around a store, in order, and what each adds to reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lot_grpc.domain.quota import Quota
from lot_grpc.ports import VectorStore
from lot_grpc.services.changes.change_tracking_store import ChangeTrackingStore
from lot_grpc.services.changes.replicas import ReplicaRegistry
from lot_grpc.services.changes.sequencer import ChangeSequencer
from lot_grpc.services.clearing.clear_guard_store import ClearGuardStore
from lot_grpc.services.clearing.clear_registry import LOOK_SECONDS, ClearRegistry
from lot_grpc.services.clearing.extent import ClearExtent
from lot_grpc.services.normal_form_store import NormalFormStore
from lot_grpc.services.quotas.quota_store import QuotaStore
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.model_store import ModelStore
from lot_grpc.services.time_source import TimeSource

NO_QUOTA: Final = Quota()


class StoreStack:
    """A store in its layers (``LAYERS``), and the state that the layers keep.

    Attributes:
        normal_form: Over the adapter.
        model: Over ``normal_form``; for what belongs to the store and to no namespace.
        tracked: Over ``model``; for the change feed.
        quotas: Over ``tracked``; for the clears themselves.
        clear_guard: Over ``quotas``; for all services.
        replicas: The processes that write to the store.
        sequencer: The numbers of this process's changes.
        clears: Which namespaces are being cleared.
        extent: What a clear deletes.
    """

    normal_form: NormalFormStore
    model: ModelStore
    tracked: ChangeTrackingStore
    quotas: QuotaStore
    clear_guard: ClearGuardStore
    replicas: ReplicaRegistry
    sequencer: ChangeSequencer
    clears: ClearRegistry
    extent: ClearExtent

    def __init__(
        self,
        adapter: VectorStore,
        registry: Registry,
        model: CurrentModel,
        time_source: TimeSource,
        look_seconds: float = LOOK_SECONDS,
        quota: Quota = NO_QUOTA,
    ) -> None:
        """``look_seconds``: how often a shared store is polled for the clears of others.

        ``quota``: that of namespaces whose policy sets none.
        """
        self._registry = registry
        self._model = model
        self._time = time_source
        self._look_seconds = look_seconds
        self._quota = quota
        for name, wrap in LAYERS.items():
            adapter = wrap(self, adapter)
            setattr(self, name, adapter)

    def add_normal_form(self, inner: VectorStore) -> VectorStore:
        """Texts that are compared have one Unicode form."""
        return NormalFormStore(inner, self._registry)

    def add_model(self, inner: VectorStore) -> VectorStore:
        """Vectors are those of the model that serves, under plain names."""
        return ModelStore(inner, self._registry, self._model)

    def add_change_tracking(self, inner: VectorStore) -> VectorStore:
        """Writes of watched records carry the number of the change."""
        self.replicas = ReplicaRegistry(inner)
        self.sequencer = ChangeSequencer(self.replicas, self._time, exclusive=inner.exclusive)
        return ChangeTrackingStore(inner, self.sequencer, self._registry)

    def add_quotas(self, inner: VectorStore) -> VectorStore:
        """Writes that would take a namespace over its quota are refused."""
        return QuotaStore(inner, self._registry, self._time, self._quota)

    def add_clear_guard(self, inner: VectorStore) -> VectorStore:
        """Writes to a namespace that is being cleared are refused."""
        self.extent = ClearExtent(self._registry)
        self.clears = ClearRegistry(
            self.model, self._time, self._look_seconds, self.sequencer.pass_by
        )
        return ClearGuardStore(inner, self.extent, self.clears)


LAYERS: Final[Mapping[str, Callable[[StoreStack, VectorStore], VectorStore]]] = {
    # Next to the adapter: every condition that reaches it is in normal form, those that the other
    # layers make included.
    "normal_form": StoreStack.add_normal_form,
    # Below all that reads whole records, so that nothing above knows the names of an epoch; a
    # reindex works on what is beneath it, where those of both epochs are seen.
    "model": StoreStack.add_model,
    # Below what refuses: a write that is refused takes no number. A clear leaves a mark here that
    # the change feed tells.
    "tracked": StoreStack.add_change_tracking,
    # Below the guard: what a clear deletes, which works here, is counted as any delete.
    "quotas": StoreStack.add_quotas,
    # Outermost: whatever a service writes is refused, before it has any effect.
    "clear_guard": StoreStack.add_clear_guard,
}
"""From the adapter outwards, by the attribute of the stack that a layer is."""
