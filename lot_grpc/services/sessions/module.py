"""Sessions: their values and messages."""

from __future__ import annotations

from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.sessions.rows import SessionRows
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.session_values import SessionValues
from lot_grpc.services.sessions.sessions import Sessions


class SessionsModule:
    """Everything about sessions."""

    def __init__(self, runtime: Runtime) -> None:
        rows = SessionRows(runtime)
        self.values = SessionValues(runtime, rows)
        self.messages = SessionMessages(runtime, rows)
        self.sessions = Sessions(runtime, rows, self.messages)
        self.maintenance = Maintenance(sweeps={"sessions": self.sessions.sweep})
