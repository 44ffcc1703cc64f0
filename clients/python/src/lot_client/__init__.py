"""Client of lot-grpc, a memory for agents that learns over time.

`AsyncLotClient` and `LotClient` have the same methods. What they take and give back is described
in `proto/lot/v1`; the messages themselves are in `lot_client.pb.lot.v1`.
"""

from lot_client.aio import AsyncLotClient
from lot_client.errors import LotError, Violation
from lot_client.recall import PatternRecall
from lot_client.retry import RetryPolicy
from lot_client.streams import AsyncEventStream, EventStream
from lot_client.sync import LotClient
from lot_client.version import __version__

__all__ = [
    "AsyncEventStream",
    "AsyncLotClient",
    "EventStream",
    "LotClient",
    "LotError",
    "PatternRecall",
    "RetryPolicy",
    "Violation",
    "__version__",
]
