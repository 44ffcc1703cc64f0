"""Client of lot-grpc, a memory for agents that learns over time.

`AsyncLotClient` and `LotClient` have the same methods. What they take and give back is described
in `proto/lot/v1`; the messages themselves are in `lot_client.pb.lot.v1`.
"""

from lot_client._async.client import AsyncLotClient
from lot_client._async.feeds import AsyncChangeWatch
from lot_client._async.recorder import AsyncRecorder
from lot_client._async.streams import AsyncEventStream
from lot_client._sync.client import LotClient
from lot_client._sync.feeds import ChangeWatch
from lot_client._sync.recorder import Recorder
from lot_client._sync.streams import EventStream
from lot_client.credentials import Tls
from lot_client.errors import LotError, Violation
from lot_client.recall import PatternRecall
from lot_client.recorder_policy import RecorderPolicy, RecorderStats
from lot_client.retry import RetryPolicy
from lot_client.values import from_value, to_dict, to_struct, to_value
from lot_client.version import __version__

__all__ = [
    "AsyncChangeWatch",
    "AsyncEventStream",
    "AsyncLotClient",
    "AsyncRecorder",
    "ChangeWatch",
    "EventStream",
    "LotClient",
    "LotError",
    "PatternRecall",
    "Recorder",
    "RecorderPolicy",
    "RecorderStats",
    "RetryPolicy",
    "Tls",
    "Violation",
    "__version__",
    "from_value",
    "to_dict",
    "to_struct",
    "to_value",
]
