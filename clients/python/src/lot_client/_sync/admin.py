# Generated from _async/admin.py: do not edit.
"""The server: what it is, and whether it is ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lot_client import fields
from lot_client._sync.base import BaseClient
from lot_client.pb.lot.v1 import admin_service_pb2 as admin


class AdminCalls(BaseClient):
    """The calls of `LotClient` for the server."""

    def get_server_info(self) -> admin.GetServerInfoResponse:
        """Version, model, limits and counts."""
        request = self._requests.make(admin.GetServerInfoRequest)
        return self.call(self.admin.GetServerInfo, request)

    def check_ready(self) -> admin.CheckReadyResponse:
        """Whether the server is ready, and if not, why."""
        request = self._requests.make(admin.CheckReadyRequest)
        return self.call(self.admin.CheckReady, request)

    def embed(
        self, items: Iterable[str | fields.EmbedItemLike], *, omit_vectors: bool = False
    ) -> admin.EmbedResponse:
        """The vectors of texts and their similarities, to see why a search finds something.

        A plain string is embedded as a text to store; for a query, pass
        `{"text": ..., "use": "QUERY"}`.
        """
        each = [{"text": item} if isinstance(item, str) else item for item in items]
        request = self._requests.make(admin.EmbedRequest, items=each, omit_vectors=omit_vectors)
        return self.call(self.admin.Embed, request)

    def review_records(
        self,
        resource_kind: fields.ResourceKindLike,
        records: Iterable[str] | Mapping[str, str],
        state: fields.ReviewStateLike,
        *,
        note: str = "",
    ) -> admin.ReviewRecordsResponse:
        """Approve or reject patterns, memories or error solutions; check every result.

        `records` are ids, or ids with the etags of the versions that were read: `{"m-1": etag}`. A
        record that was edited since then fails with ETAG_MISMATCH.
        """
        given = records if isinstance(records, Mapping) else dict.fromkeys(records, "")
        request = self._requests.make(
            admin.ReviewRecordsRequest,
            resource_kind=resource_kind,
            items=[{"id": one, "etag": etag} for one, etag in given.items()],
            state=state,
            note=note,
        )
        return self.call(self.admin.ReviewRecords, request)

    def compact(self) -> admin.CompactResponse:
        """Compact the store."""
        request = self._requests.make(admin.CompactRequest)
        return self.call(self.admin.Compact, request)
