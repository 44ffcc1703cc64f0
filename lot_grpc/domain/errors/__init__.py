"""Errors, in terms that a caller understands.

Each error names its reason (a value of ``lot.v1.ErrorReason`` without its prefix) and carries
fields; the sentence says what to do next. ``server.status`` turns them into gRPC statuses.
"""

from lot_grpc.domain.errors.access import *
from lot_grpc.domain.errors.base import *
from lot_grpc.domain.errors.operation import *
from lot_grpc.domain.errors.records import *
from lot_grpc.domain.errors.requests import *
from lot_grpc.domain.errors.streams import *
