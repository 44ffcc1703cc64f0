"""Claims on contents: whoever holds one owns the only pattern with that content.

A claim is a row that names a pattern; insert-only decides between concurrent claims. One whose
pattern is missing, was deleted, or now has different content is transferred when it is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import Condition, Equals, IdIn, Record, VectorStore
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.services.time_source import TimeSource

_KIND = "unique_content"


class UniqueContentIndex:
    """The claims of all namespaces, by point (``records.patterns.claim_point``)."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source

    async def held(self, namespace: str, content_index: Sequence[str]) -> set[str]:
        """The claims that are held."""
        return (
            set(await self._store.get(REQUESTS, namespace, content_index))
            if content_index
            else set()
        )

    async def take(self, namespace: str, contents: Mapping[str, str]) -> set[str]:
        """Take claims for pattern ids; return those that were free."""
        if not contents:
            return set()
        now = self._time.now()
        return await self._store.insert(
            REQUESTS,
            [
                Record(
                    claim,
                    namespace,
                    {"kind": _KIND, "pattern_id": pattern_id, "create_time": now},
                )
                for claim, pattern_id in contents.items()
            ],
        )

    async def owner(self, namespace: str, claim: str, otherwise: str) -> str:
        """The pattern that holds a claim; ``otherwise`` takes it if none does.

        Raises ContentionError.
        """

        async def attempt() -> str:
            held = await self._store.get(REQUESTS, namespace, [claim])
            if claim in held:
                return str(held[claim].payload["pattern_id"])
            if not await self.take(namespace, {claim: otherwise}):
                raise ConflictError
            return otherwise

        return await compare_and_set("pattern", otherwise, attempt)

    async def move(self, namespace: str, claim: str, old: str, new: str) -> None:
        """Transfer a claim from ``old`` to ``new``."""
        await self._store.update(
            REQUESTS, namespace, claim, set={"pattern_id": new}, when=[Equals("pattern_id", old)]
        )

    async def release(self, namespace: str, claim: str, pattern_id: str) -> None:
        """Release a claim, if this pattern holds it."""
        theirs: list[Condition] = [IdIn((claim,)), Equals("pattern_id", pattern_id)]
        await self._store.delete(REQUESTS, namespace, theirs)

    async def release_all(self, namespace: str, pattern_id: str) -> None:
        """Release all claims of a pattern."""
        await self._store.delete(REQUESTS, namespace, [Equals("pattern_id", pattern_id)])
