"""A store that dies on demand, to prove that every sequence of writes can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lot_grpc.ports import CollectionSpec, Update, VectorStore
from lot_grpc.services.forwarding_store import ForwardingStore


class InjectedFault(Exception):  # noqa: N818 - not an error of the product, the death of a process
    """The process died here. Product code must not catch it by name."""


class When(StrEnum):
    """Side of the write on which the process dies."""

    BEFORE = "before"
    AFTER = "after"


_Call = Callable[..., Coroutine[Any, Any, Any]]


def _write(name: str) -> _Call:
    async def write(
        self: FaultInjectingStore, target: str | CollectionSpec, *given: Any, **named: Any
    ) -> Any:
        collection = target.name if isinstance(target, CollectionSpec) else target
        inner, number = self._before(name, collection)
        result = await getattr(inner, name)(target, *given, **named)
        self._after(number)
        return result

    return write


def _read(name: str) -> _Call:
    async def read(self: FaultInjectingStore, *given: Any, **named: Any) -> Any:
        return await getattr(self._alive(), name)(*given, **named)

    return read


class FaultInjectingStore(ForwardingStore):
    """Forwards calls to ``inner``, counts writes, and dies at the chosen one.

    ``writes`` lists (operation, collection) of every write that began, including the fatal one.
    """

    def __init__(self, inner: VectorStore) -> None:
        super().__init__(inner)
        self.inner = inner
        self.writes: list[tuple[str, str]] = []
        self._fatal = 0
        self._when = When.BEFORE
        self._dead = False

    def fail_at(self, n: int, when: When = When.BEFORE) -> None:
        """Die at the ``n``-th write from now, counted from 1; 0: never."""
        self._fatal = len(self.writes) + n if n else 0
        self._when = when

    def revive(self) -> None:
        """Restart the process, with no fault planned."""
        self._dead = False
        self._fatal = 0

    @property
    def dead(self) -> bool:
        """Whether the planned fault has happened."""
        return self._dead

    def _alive(self) -> VectorStore:
        if self._dead:
            raise InjectedFault("the process is dead; revive() first")
        return self.inner

    def _before(self, operation: str, collection: str) -> tuple[VectorStore, int]:
        inner = self._alive()
        self.writes.append((operation, collection))
        number = len(self.writes)
        if number == self._fatal and self._when is When.BEFORE:
            self._die(operation, collection)
        return inner, number

    def _after(self, number: int) -> None:
        if number == self._fatal and self._when is When.AFTER:
            self._die(*self.writes[number - 1])

    def _die(self, operation: str, collection: str) -> None:
        self._dead = True
        raise InjectedFault(f"died {self._when} write {self._fatal}: {operation} {collection}")

    async def update_many(self, collection: str, updates: Sequence[Update]) -> set[str]:
        """Update one by one, so that it may die between two writes."""
        return {
            one.id
            for one in updates
            if await self.update(collection, one.namespace, one.id, set=one.set, when=one.when)
        }

    if not TYPE_CHECKING:  # their types are those of ForwardingStore
        extend = _write("extend")
        drop_vectors = _write("drop_vectors")
        insert = _write("insert")
        put = _write("put")
        replace = _write("replace")
        update = _write("update")
        set_vectors = _write("set_vectors")
        delete = _write("delete")
        delete_expired = _write("delete_expired")
        ensure_collections = _read("ensure_collections")
        namespaces = _read("namespaces")
        expired = _read("expired")
        get = _read("get")
        scroll = _read("scroll")
        search = _read("search")
        count = _read("count")
        facet = _read("facet")
        check = _read("check")
        compact = _read("compact")
        info = _read("info")
        flush = _read("flush")
