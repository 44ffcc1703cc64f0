"""What the use cases need from the outside: a store, an embedder, a clock.

Nothing here knows Qdrant, ONNX or gRPC. The adapters in ``storage`` and ``embedding`` implement
these protocols; ``app`` hands them to the services.
"""

from lot_grpc.ports.clock import *
from lot_grpc.ports.conditions import *
from lot_grpc.ports.embedding import *
from lot_grpc.ports.records import *
from lot_grpc.ports.store import *
