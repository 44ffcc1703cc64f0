"""The preferences of MemoryService on the wire."""

from __future__ import annotations

from lot_grpc.domain.errors import PreferenceNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.pb.lot.v1 import preference_pb2 as pb
from lot_grpc.server.answers import Page, shortened
from lot_grpc.server.call import Context
from lot_grpc.server.convert import preferences as convert
from lot_grpc.server.convert.values import MAX_STRUCT_BYTES
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services.memories.preferences import Preferences

_DEFAULT_PAGE = 10
_LARGEST = MAX_STRUCT_BYTES + 4096
"""Bytes of a preference."""


class PreferenceServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, preferences: Preferences) -> None:
        self._preferences = preferences

    async def PutPreference(
        self, request: pb.PutPreferenceRequest, context: Context
    ) -> pb.PutPreferenceResponse:
        put = await self._preferences.put(
            namespace_or_default(request.namespace), convert.draft_from_pb(request)
        )
        return pb.PutPreferenceResponse(
            preference=convert.preference_to_pb(put.preference), created=put.created
        )

    async def GetPreference(
        self, request: pb.GetPreferenceRequest, context: Context
    ) -> pb.GetPreferenceResponse:
        answer = pb.GetPreferenceResponse()
        page = Page(request, answer, convert.revision_to_pb, reserved=_LARGEST)
        preference, _ = await self._preferences.get_with_history(
            namespace_or_default(request.namespace),
            request.key,
            request.history_limit,
            request.before_revision,
            page.fits,
        )
        answer.preference.CopyFrom(convert.preference_to_pb(preference))
        if page.full:
            last = answer.history[-1].revision
            answer.notices.append(
                shortened("history", f"it ends at revision {last}; continue with before_revision")
            )
        return answer

    async def ListPreferences(
        self, request: pb.ListPreferencesRequest, context: Context
    ) -> pb.ListPreferencesResponse:
        page = Page(request, pb.ListPreferencesResponse(), convert.preference_to_pb)
        found = await self._preferences.list_page(
            namespace_or_default(request.namespace),
            tuple(request.categories),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def DeletePreference(
        self, request: pb.DeletePreferenceRequest, context: Context
    ) -> pb.DeletePreferenceResponse:
        try:
            await self._preferences.delete(
                namespace_or_default(request.namespace), request.key, request.etag
            )
        except PreferenceNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeletePreferenceResponse(deleted=False)
        return pb.DeletePreferenceResponse(deleted=True)
