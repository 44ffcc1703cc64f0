"""The client."""

from __future__ import annotations

from lot_client._async.admin import AsyncAdminCalls
from lot_client._async.episodes import AsyncEpisodeCalls
from lot_client._async.memories import AsyncMemoryCalls
from lot_client._async.patterns import AsyncPatternCalls


class AsyncLotClient(AsyncPatternCalls, AsyncEpisodeCalls, AsyncMemoryCalls, AsyncAdminCalls):
    """A connection to a lot-grpc server, for one event loop. Create it where that loop runs.

    Methods take the fields of the contract's requests (`proto/lot/v1` says what each means) and
    raise LotError. Calls that are safe to repeat are retried while the server is unreachable or
    overloaded.

    Attributes:
        patterns, episodes, memories, learning, admin: the generated stubs, for every call that has
            no method here, in the client's namespace unless the request names one. On their own
            they raise grpc.RpcError and retry nothing: see `call`.
    """
