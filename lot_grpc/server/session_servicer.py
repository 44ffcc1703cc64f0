"""The sessions of MemoryService on the wire."""

from __future__ import annotations

from lot_grpc.domain.errors import SessionNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.preference import GENERAL
from lot_grpc.domain.session import DEFAULT_IMPORTANCE
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.pb.lot.v1 import session_pb2 as pb
from lot_grpc.server.answers import record_budget, shortened
from lot_grpc.server.call import Context
from lot_grpc.server.convert import sessions as convert
from lot_grpc.server.convert.values import micros_from_pb, time_to_pb
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.session_values import SessionValues
from lot_grpc.services.sessions.sessions import Sessions


class SessionServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        sessions: Sessions,
        values: SessionValues,
        messages: SessionMessages,
    ) -> None:
        self._sessions = sessions
        self._values = values
        self._messages = messages

    async def PutSessionValue(
        self, request: pb.PutSessionValueRequest, context: Context
    ) -> pb.PutSessionValueResponse:
        expire_time = await self._values.put(
            namespace_or_default(request.namespace),
            request.session_id,
            request.key,
            convert.value_from_pb(request.value),
            micros_from_pb(request, "ttl", ""),
            category=request.category or GENERAL,
            importance=request.importance if request.HasField("importance") else DEFAULT_IMPORTANCE,
        )
        return pb.PutSessionValueResponse(expire_time=time_to_pb(expire_time))

    async def GetSessionValue(
        self, request: pb.GetSessionValueRequest, context: Context
    ) -> pb.GetSessionValueResponse:
        value = await self._values.get(
            namespace_or_default(request.namespace), request.session_id, request.key
        )
        if value is None:
            return pb.GetSessionValueResponse(found=False)
        return pb.GetSessionValueResponse(
            value=convert.value_to_pb(value), found=True, details=convert.details_to_pb(value)
        )

    async def AppendSessionMessage(
        self, request: pb.AppendSessionMessageRequest, context: Context
    ) -> pb.AppendSessionMessageResponse:
        appended = await self._messages.append(
            namespace_or_default(request.namespace), convert.draft_from_pb(request)
        )
        return pb.AppendSessionMessageResponse(
            message=convert.message_to_pb(appended.message),
            message_count=appended.message_count,
            expire_time=time_to_pb(appended.expire_time),
        )

    async def GetSession(
        self, request: pb.GetSessionRequest, context: Context
    ) -> pb.GetSessionResponse:
        session = await self._sessions.get(
            namespace_or_default(request.namespace),
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
            session=convert.session_to_pb(session),
            omitted_keys=session.omitted_keys,
            notices=notices,
        )

    async def ClearSession(
        self, request: pb.ClearSessionRequest, context: Context
    ) -> pb.ClearSessionResponse:
        try:
            await self._sessions.clear(
                namespace_or_default(request.namespace),
                request.session_id,
                request.keys,
                messages_only=request.messages_only,
                max_importance=(
                    request.max_importance if request.HasField("max_importance") else None
                ),
            )
        except SessionNotFoundError:
            if not request.allow_missing:
                raise
            return pb.ClearSessionResponse(cleared=False)
        return pb.ClearSessionResponse(cleared=True)
