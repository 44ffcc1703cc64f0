# Generated from _async/client.py: do not edit.
"""The client."""

from __future__ import annotations

from lot_client._sync.admin import AdminCalls
from lot_client._sync.episodes import EpisodeCalls
from lot_client._sync.memories import MemoryCalls
from lot_client._sync.patterns import PatternCalls


class LotClient(PatternCalls, EpisodeCalls, MemoryCalls, AdminCalls):
    """A connection to a lot-grpc server, for any number of threads.

    Methods take the fields of the contract's requests (`proto/lot/v1` says what each means) and
    raise LotError. Calls that are safe to repeat are retried while the server is unreachable or
    overloaded.

    Attributes:
        patterns, episodes, memories, learning, admin: the generated stubs, for every call that has
            no method here, in the client's namespace unless the request names one. On their own
            they raise grpc.RpcError and retry nothing: see `call`.
    """
