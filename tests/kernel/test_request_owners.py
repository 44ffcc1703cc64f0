"""Whose a request id is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lot_grpc.domain.access import Principal
from lot_grpc.domain.extraction.single import solution_request
from lot_grpc.domain.ids import OWN_PREFIX, own_request_id
from lot_grpc.kernel.idempotency import IdempotencyKey
from lot_grpc.work import begin_work, work_for


def point(request_id: str, principal_id: str) -> str:
    """Where a request is recorded."""
    begin_work()
    if principal_id:
        work_for(Principal(principal_id, "", ()), "n")
    return IdempotencyKey("n", "SavePattern", request_id, "", {}).point


async def test_a_request_id_is_its_principals():
    assert len({point("r-1", one) for one in ("", "key:one", "key:two")}) == 3
    assert point("r-1", "key:one") == point("r-1", "key:one")


async def test_a_request_id_of_the_server_itself_is_nobodys():
    own = own_request_id("extraction", "e", 1)
    assert own.startswith(OWN_PREFIX)
    assert point(own, "") == point(own, "key:one") == point(own, "key:two")
    assert own != own_request_id("feedback", "e", 1)


def test_what_an_episode_teaches_is_saved_under_the_servers_own_request_id():
    episode: Any = SimpleNamespace(episode_id="e")
    assert solution_request(episode, 1).startswith(OWN_PREFIX)
    assert solution_request(episode, 1) != solution_request(episode, 2)
