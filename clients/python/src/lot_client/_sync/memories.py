# Generated from _async/memories.py: do not edit.
"""Memories, the context of a task, and changes as they happen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Unpack

from lot_client import fields
from lot_client._sync.base import BaseClient
from lot_client._sync.feeds import ChangeWatch
from lot_client.pb.lot.v1 import memory_service_pb2 as memories
from lot_client.pb.lot.v1 import task_context_pb2 as contexts
from lot_client.pb.lot.v1.change_pb2 import WatchChangesRequest
from lot_client.pb.lot.v1.memory_pb2 import Memory


class MemoryCalls(BaseClient):
    """The calls of `LotClient` for memories."""

    def create_memory(
        self,
        content: str,
        *,
        memory_id: str = "",
        request_id: str = "",
        wait_for_index: bool = False,
        **memory: Unpack[fields.MemoryFields],
    ) -> memories.CreateMemoryResponse:
        """Store a memory. `supersedes` names the one that it corrects or replaces.

        The response names stored memories that it contradicts (`conflicting_memory_ids`).

        Content longer than 64 passages (about 2,500 words) is indexed in the background: `indexing`
        is `PENDING` until that is complete. `wait_for_index` waits for it, but returns before the
        deadline, if need be while it is still `PENDING`.
        """
        request = self._requests.make(
            memories.CreateMemoryRequest,
            memory={"content": content, **memory},
            memory_id=memory_id,
            request_id=request_id,
            wait_for_index=wait_for_index,
        )
        return self.call(self.memories.CreateMemory, request)

    def get_memory(self, memory_id: str) -> Memory:
        """Read a memory, superseded or not."""
        request = self._requests.make(memories.GetMemoryRequest, memory_id=memory_id)
        return self.call(self.memories.GetMemory, request).memory

    def delete_memory(self, memory_id: str, *, etag: str = "", allow_missing: bool = False) -> bool:
        """Delete a memory. False: there was none (``allow_missing``)."""
        request = self._requests.make(
            memories.DeleteMemoryRequest,
            memory_id=memory_id,
            etag=etag,
            allow_missing=allow_missing,
        )
        return self.call(self.memories.DeleteMemory, request).deleted

    def search_memories(
        self,
        query: str,
        *,
        filter: fields.MemoryFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        min_match: float | None = None,
        ranking: fields.RankingLike | None = None,
        seed: int | None = None,
        rerank: bool = False,
        explain: bool = False,
        as_of: datetime | None = None,
    ) -> memories.SearchMemoriesResponse:
        """The memories most relevant by meaning and words, within the filter.

        Only those that are true now, or at `as_of`: begun, not ended and not superseded.
        """
        request = self._requests.make(
            memories.SearchMemoriesRequest,
            query=query,
            filter=filter,
            limit=limit,
            min_similarity=min_similarity,
            min_match=min_match,
            ranking=ranking,
            seed=seed,
            rerank=rerank,
            explain=explain,
            as_of=as_of,
        )
        return self.call(self.memories.SearchMemories, request)

    def get_task_context(
        self,
        task: str = "",
        *,
        task_id: str = "",
        category: str = "",
        task_type: str = "",
        language: str = "",
        complexity: fields.ComplexityLike | None = None,
        limit: int = 0,
        max_tokens: int = 0,
        min_similarity: float | None = None,
        min_match: float | None = None,
        preference_categories: Iterable[str] = (),
    ) -> contexts.GetTaskContextResponse:
        """What is known for a task, or for the one of an earlier `task_id`, ready for a prompt."""
        request = self._requests.make(
            contexts.GetTaskContextRequest,
            task=task,
            task_id=task_id,
            category=category,
            task_type=task_type,
            language=language,
            complexity=complexity,
            limit=limit,
            max_tokens=max_tokens,
            min_similarity=min_similarity,
            min_match=min_match,
            preference_categories=list(preference_categories),
        )
        return self.call(self.memories.GetTaskContext, request)

    def watch_changes(
        self,
        *,
        resource_kinds: Iterable[fields.ResourceKindLike] = (),
        types: Iterable[fields.ChangeTypeLike] = (),
        after_cursor: str = "",
        from_start: bool = False,
        omit_payload: bool = False,
        heartbeat_interval: timedelta | float | None = None,
    ) -> ChangeWatch:
        """Changes as they happen: iterate over it, and keep its `cursor` to resume later.

        Resumes by itself after a lost connection, unless the server is unreachable for longer than
        the client's deadline. Each change is delivered at least once.
        """
        request = self._requests.make(
            WatchChangesRequest,
            resource_kinds=resource_kinds,
            types=types,
            after_cursor=after_cursor,
            from_start=from_start,
            omit_payload=omit_payload,
            heartbeat_interval=heartbeat_interval,
        )
        return ChangeWatch(self.memories, request, self._retry, self._deadline)
