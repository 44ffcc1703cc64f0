"""The RPCs of MemoryService for sessions and preferences."""

from __future__ import annotations

from lot_grpc.domain.preference import GENERAL
from lot_grpc.domain.session import DEFAULT_IMPORTANCE
from lot_grpc.pb.lot.v1 import preference_pb2
from lot_grpc.pb.lot.v1 import session_pb2 as pb
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceServicer
from lot_grpc.server.answers import Page, record_budget, shortened
from lot_grpc.server.call import Context
from lot_grpc.server.codec import sessions as codec
from lot_grpc.server.codec.values import MAX_STRUCT_BYTES, time_to_pb, ttl_of
from lot_grpc.server.servicers.base import namespace_of, read_page, was_deleted
from lot_grpc.services.build import Services

_LARGEST = MAX_STRUCT_BYTES + 4096
"""Overhead of a preference in bytes."""


class SessionRpcs(MemoryServiceServicer):
    """The part of MemoryServicer for sessions and preferences."""

    _services: Services

    # --- preferences ------------------------------------------------------------------------------

    async def PutPreference(
        self, request: preference_pb2.PutPreferenceRequest, context: Context
    ) -> preference_pb2.PutPreferenceResponse:
        put = await self._services.preferences.put(
            namespace_of(request), codec.preference_from_pb(request)
        )
        return preference_pb2.PutPreferenceResponse(
            preference=codec.preference_to_pb(put.preference), created=put.created
        )

    async def GetPreference(
        self, request: preference_pb2.GetPreferenceRequest, context: Context
    ) -> preference_pb2.GetPreferenceResponse:
        answer = preference_pb2.GetPreferenceResponse()
        page = Page(request, answer, codec.revision_to_pb, reserved=_LARGEST)
        preference, _ = await self._services.preferences.get_with_history(
            namespace_of(request),
            request.key,
            request.history_limit,
            request.before_revision,
            page.fits,
        )
        answer.preference.CopyFrom(codec.preference_to_pb(preference))
        if page.full:
            last = answer.history[-1].revision
            answer.notices.append(
                shortened("history", f"it ends at revision {last}; continue with before_revision")
            )
        return answer

    async def ListPreferences(
        self, request: preference_pb2.ListPreferencesRequest, context: Context
    ) -> preference_pb2.ListPreferencesResponse:
        response, categories = preference_pb2.ListPreferencesResponse(), tuple(request.categories)
        read = self._services.preferences.list_page
        return await read_page(request, response, codec.preference_to_pb, read, categories)

    async def DeletePreference(
        self, request: preference_pb2.DeletePreferenceRequest, context: Context
    ) -> preference_pb2.DeletePreferenceResponse:
        deleting = self._services.preferences.delete(
            namespace_of(request), request.key, request.etag
        )
        return preference_pb2.DeletePreferenceResponse(deleted=await was_deleted(deleting, request))

    # --- sessions ---------------------------------------------------------------------------------

    async def PutSessionValue(
        self, request: pb.PutSessionValueRequest, context: Context
    ) -> pb.PutSessionValueResponse:
        expire_time = await self._services.sessions.values.put(
            namespace_of(request),
            request.session_id,
            request.key,
            codec.session_value_from_pb(request.value),
            ttl_of(request),
            category=request.category or GENERAL,
            importance=request.importance if request.HasField("importance") else DEFAULT_IMPORTANCE,
        )
        return pb.PutSessionValueResponse(expire_time=time_to_pb(expire_time))

    async def GetSessionValue(
        self, request: pb.GetSessionValueRequest, context: Context
    ) -> pb.GetSessionValueResponse:
        value = await self._services.sessions.values.get(
            namespace_of(request), request.session_id, request.key
        )
        if value is None:
            return pb.GetSessionValueResponse(found=False)
        return pb.GetSessionValueResponse(
            value=codec.session_value_to_pb(value), found=True, details=codec.details_to_pb(value)
        )

    async def AppendSessionMessage(
        self, request: pb.AppendSessionMessageRequest, context: Context
    ) -> pb.AppendSessionMessageResponse:
        appended = await self._services.sessions.messages.append(
            namespace_of(request), codec.draft_from_pb(request)
        )
        return codec.appended_to_pb(appended)

    async def GetSession(
        self, request: pb.GetSessionRequest, context: Context
    ) -> pb.GetSessionResponse:
        session = await self._services.sessions.sessions.get(
            namespace_of(request),
            request.session_id,
            request.message_limit,
            record_budget(),
            request.before_sequence,
        )
        notices = []
        if session.omitted_keys:
            notices.append(
                shortened("session.values", "read the values of omitted_keys one by one")
            )
        if session.ended_early:
            first = session.messages[0].sequence
            why = f"they begin at {first}; continue with before_sequence"
            notices.append(shortened("session.messages", why))
        return pb.GetSessionResponse(
            session=codec.session_to_pb(session),
            omitted_keys=session.omitted_keys,
            notices=notices,
        )

    async def ClearSession(
        self, request: pb.ClearSessionRequest, context: Context
    ) -> pb.ClearSessionResponse:
        bound = request.max_importance if request.HasField("max_importance") else None
        clearing = self._services.sessions.sessions.clear(
            namespace_of(request),
            request.session_id,
            request.keys,
            clear_messages=request.clear_messages,
            max_importance=bound,
        )
        return pb.ClearSessionResponse(cleared=await was_deleted(clearing, request))
