"""The policies of namespaces: one record each, once set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Protocol

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.origin import Editor, OriginKind, Review, rewrites
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit, StoredPolicy
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set, require_etag
from lot_grpc.ports import Equals, VectorStore
from lot_grpc.services.records.collections import POLICIES, SORT_KEY
from lot_grpc.services.records.policies import policy_from_record, policy_point, policy_record
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_source import TimeSource

_RECENT = 5_000_000
_NAMESPACES = 1_000


class _Reviewed(Protocol):
    """A stored record with a review."""

    @property
    def namespace(self) -> str: ...
    @property
    def content(self) -> Any: ...
    @property
    def review(self) -> Review | None: ...


class Policies:
    """Reads and sets policies."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source
        self._recent: dict[str, tuple[int, NamespacePolicy]] = {}
        self._edits = 0

    async def get(self, namespace: str) -> StoredPolicy:
        """The policy of a namespace; the default if none was set."""
        return (await self._read(namespace))[0]

    async def recent(self, namespace: str) -> NamespacePolicy:
        """The policy as it was in the last 5 seconds; what this process sets applies at once."""
        now, edits = self._time.now(), self._edits
        if namespace in self._recent:
            time, policy = self._recent[namespace]
            if 0 <= now - time < _RECENT:
                return policy
        policy = (await self.get(namespace)).policy
        if edits == self._edits:
            self._recent[namespace] = now, policy
            if len(self._recent) > _NAMESPACES:
                del self._recent[next(iter(self._recent))]
        return policy

    async def thresholds(self, namespace: str) -> tuple[float, float]:
        """``similarity_threshold`` and ``confidence_boost`` of recommendations."""
        policy = (await self.get(namespace)).policy
        return policy.similarity_threshold, policy.confidence_boost

    async def review_origins(self, namespace: str) -> tuple[OriginKind, ...]:
        """The origins whose writes need a review."""
        return (await self.get(namespace)).policy.review_origins

    async def review_of_edit(self, old: _Reviewed, new: Any, editor: Editor) -> Review | None:
        """The review of a record after an edit of its content to ``new``, which is signed."""
        if not rewrites(old.content, new):
            return old.review
        origins = await self.review_origins(old.namespace)
        return editor.review_after(old.content.origin, old.review, origins)

    async def all(self) -> AsyncIterator[StoredPolicy]:
        """Every policy set, in all namespaces."""
        async for record in scan(self._store, POLICIES, None, []):
            yield policy_from_record(record)

    async def update(
        self,
        namespace: str,
        edit: PolicyEdit,
        etag: str,
        *,
        dry_run: bool = False,
        check: Callable[[NamespacePolicy, NamespacePolicy], None] = lambda old, new: None,
    ) -> StoredPolicy:
        """Apply an edit to the policy that has ``etag`` (empty: any); return what stands then.

        With ``dry_run`` nothing is set, and the answer is what would stand. ``check`` is given the
        policy before and after, and may raise. Raises EtagMismatchError, ContentionError.
        """

        async def attempt() -> StoredPolicy:
            stored, sort_key = await self._read(namespace)
            require_etag(ResourceKind.POLICY, namespace, etag, stored.etag)
            edited = replace(stored, policy=edit.apply(stored.policy))
            check(stored.policy, edited.policy)
            if dry_run or (stored.revision and edited == stored):
                return edited
            edited = replace(
                edited,
                revision=stored.revision + 1,
                update_time=max(self._time.now(), stored.update_time),
            )
            if not await self._write(edited, sort_key):
                raise ConflictError
            self._edits += 1
            self._recent.pop(namespace, None)
            return edited

        return await compare_and_set(ResourceKind.POLICY, namespace, attempt)

    async def _read(self, namespace: str) -> tuple[StoredPolicy, int]:
        """The policy, and its sort key; 0 if none was set."""
        point = policy_point(namespace)
        found = await self._store.get(POLICIES, namespace, [point])
        if point not in found:
            return StoredPolicy(namespace), 0
        return policy_from_record(found[point]), found[point].payload[SORT_KEY]

    async def _write(self, edited: StoredPolicy, sort_key: int) -> bool:
        record = policy_record(edited, sort_key or self._time.sort_key())
        if edited.revision == 1:
            return record.id in await self._store.insert(POLICIES, [record])
        return await self._store.replace(
            POLICIES, record, when=[Equals("revision", edited.revision - 1)]
        )
