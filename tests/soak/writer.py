"""A client that makes all kinds of single calls, each with a request id, and notes each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lot_client import AsyncLotClient, LotError

from tests.soak import content
from tests.soak.books import Asked, asked
from tests.soak.calls import Post, passes

_PAUSE = 0.4
"""Mean seconds between two calls of one kind."""

_LEAVES = 0.2
"""How often a request in doubt is left there, rather than repeated."""


class OpenStream:
    """Makes calls until the run is over, several at a time."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._dice = post.dice
        self._client = AsyncLotClient(post.address)
        self._life = sum(entry["kind"] == "life" for entry in post.journal.entries)
        self._episode = f"{post.name}-single"
        self._number = 0

    async def run(self) -> None:
        """Repeat what is in doubt, then begin anew."""
        left = [ask for ask in asked(self._post.journal.entries).values() if not ask.settled]
        self._post.journal.write("life")
        for ask in left:
            if self._dice.random() < _LEAVES or ask.what == "update":
                self._post.journal.write("doubt", id=ask.request_id)
            else:
                await self._insist(ask)
        await self._until_over(self._start_single)
        kinds = (self._save, self._outcome, self._event, self._whole, self._memory, self._recall)
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self._again_and_again(kind))

    async def _start_single(self) -> None:
        await self._client.start_episode(
            content.task(self._episode),
            episode_id=self._episode,
            request_id=f"start-{self._episode}",
        )

    async def _again_and_again(self, kind: Callable[[], Awaitable[None]]) -> None:
        while not self._post.over:
            await kind()
            await asyncio.sleep(self._post.pause(_PAUSE))

    def _name(self) -> str:
        self._number += 1
        return f"{self._post.name}-{self._life}-{self._number}"

    # --- one of each kind -----------------------------------------------------------------------

    async def _save(self) -> None:
        """Save a pattern; read it, and edit or delete some."""
        name = self._name()
        answer = await self._ask(name, "save", task=content.task(name))
        if answer is None:
            return
        pattern_id = answer["pattern_id"]
        await self._until_over(lambda: self._read_back(pattern_id, name))
        dice = self._dice.random()
        if dice < 0.3:
            for version in range(1, self._dice.randint(2, 4)):
                done = await self._ask(
                    f"{name}-v{version}", "update", pattern_id=pattern_id, version=version
                )
                if done is None:
                    return
        elif dice < 0.6:
            await self._ask(f"{name}-delete", "delete", pattern_id=pattern_id)

    async def _read_back(self, pattern_id: str, name: str) -> None:
        pattern = await self._client.get_pattern(pattern_id)
        if pattern.task != content.task(name):
            self._post.journal.bad(f"pattern {pattern_id} has another task than was saved")

    async def _outcome(self) -> None:
        await self._ask(
            self._name(),
            "outcome",
            pattern_ids=self._dice.sample(content.HOT, self._dice.randint(1, 3)),
            outcome=self._dice.choice(("SUCCESS", "FAILURE", "PARTIAL")),
        )

    async def _event(self) -> None:
        number = self._life * 1_000_000 + self._number
        await self._ask(self._name(), "event", episode_id=self._episode, number=number)

    async def _whole(self) -> None:
        name = self._name()
        count = self._dice.choice((0, 1, 5, 20, 60))
        await self._ask(name, "episode", task=content.task(name), count=count)

    async def _memory(self) -> None:
        name = self._name()
        answer = await self._ask(name, "memory", content=content.task(name))
        if answer is not None and self._dice.random() < 0.5:
            await self._ask(f"{name}-forget", "forget", memory_id=name)

    async def _recall(self) -> None:
        query = content.task(self._name())
        hits = await self._until_over(lambda: self._client.recall_patterns(query, limit=10))
        if hits is not None and not hits.hits:
            self._post.journal.bad("a recall found nothing")
        await self._until_over(lambda: self._client.recall_episodes(query))
        await self._until_over(lambda: self._client.search_memories(query))
        self._post.journal.write("recalled")

    # --- until it is known ----------------------------------------------------------------------

    async def _ask(self, request_id: str, what: str, **fields: Any) -> dict[str, Any] | None:
        """Note, send, note. None: it stays in doubt."""
        self._post.journal.write("ask", id=request_id, what=what, fields=fields)
        return await self._insist(Asked(request_id, what, fields))

    async def _insist(self, ask: Asked) -> dict[str, Any] | None:
        while True:
            try:
                answer: dict[str, Any] = await getattr(self, f"_send_{ask.what}")(ask)
            except LotError as error:
                if not passes(error):
                    raise
                if ask.what == "update" or self._dice.random() < _LEAVES:
                    self._post.journal.write("doubt", id=ask.request_id)
                    return None
                await asyncio.sleep(0.3)
                continue
            self._post.journal.write("ack", id=ask.request_id, answer=answer)
            return answer

    async def _until_over(self, read: Callable[[], Awaitable[Any]]) -> Any:
        """What is read, as soon as the server is there."""
        while True:
            try:
                return await read()
            except LotError as error:
                if not passes(error):
                    raise
            await asyncio.sleep(0.3)

    async def _send_save(self, ask: Asked) -> dict[str, Any]:
        answer = await self._client.save_pattern(ask.fields["task"], request_id=ask.request_id)
        return {"pattern_id": answer.pattern.pattern_id}

    async def _send_update(self, ask: Asked) -> dict[str, Any]:
        version = {"version": ask.fields["version"]}
        await self._client.update_pattern(ask.fields["pattern_id"], metadata=version)
        return {}

    async def _send_delete(self, ask: Asked) -> dict[str, Any]:
        await self._client.delete_pattern(ask.fields["pattern_id"], allow_missing=True)
        return {}

    async def _send_outcome(self, ask: Asked) -> dict[str, Any]:
        await self._client.record_outcome(
            ask.fields["pattern_ids"],
            ask.fields["outcome"],
            query="a query",
            note=ask.request_id,
            request_id=ask.request_id,
        )
        return {}

    async def _send_event(self, ask: Asked) -> dict[str, Any]:
        episode = ask.fields["episode_id"]
        event: Any = content.event(episode, ask.fields["number"])
        stored = await self._client.record_event(episode, event, request_id=ask.request_id)
        return {"sequence": stored.sequence}

    async def _send_episode(self, ask: Asked) -> dict[str, Any]:
        name = ask.request_id
        events: Any = [content.event(name, n + 1) for n in range(ask.fields["count"])]
        episode = await self._client.record_episode(
            ask.fields["task"], "SUCCEEDED", events, request_id=name
        )
        return {"episode_id": episode.episode_id}

    async def _send_memory(self, ask: Asked) -> dict[str, Any]:
        await self._client.create_memory(
            ask.fields["content"], memory_id=ask.request_id, request_id=ask.request_id
        )
        return {}

    async def _send_forget(self, ask: Asked) -> dict[str, Any]:
        await self._client.delete_memory(ask.fields["memory_id"], allow_missing=True)
        return {}
