"""An agent that records one episode after another, and outlives its own death."""

from __future__ import annotations

import asyncio
from typing import Any

from lot_client import LotError

from tests.soak import content
from tests.soak.books import Recorded, recorded
from tests.soak.calls import Post, passes
from tests.soak.recording import Flavour, Recorders

_PAUSE = 0.025
"""Mean seconds between two events."""

_LEAVES = 0.4
"""How often it gives up an episode that it was killed in, rather than go on with it."""


class Agent:
    """Records until the run is over. ``spills``: it keeps its events in a file too."""

    def __init__(self, post: Post, flavour: Flavour, *, spills: bool) -> None:
        self._post = post
        self._note = post.journal.write
        self._recorders = Recorders(flavour, post.address)
        self._options: dict[str, Any] = {"max_delay": 0.1, "max_batch_events": 20}
        if spills:
            spill = post.folder / f"{post.name}.spill"
            self._options |= {"when_full": "SPILL", "spill_path": spill, "max_buffer_events": 50}
        self._spills = spills

    async def run(self) -> None:
        """One episode after another."""
        books = recorded(self._post.journal.entries)
        if books:
            await self._resume([*books.values()][-1])
        number = len(books)
        while not self._post.over:
            number += 1
            name = f"{self._post.name}-{number}"
            book = Recorded(name, self._post.dice.randint(1, 250))
            self._note("begin", episode=name, count=book.count)
            await self._record(book)

    async def _resume(self, book: Recorded) -> None:
        """Go on with what an earlier life began, or leave it."""
        if book.state in {"ended", "left"}:
            return
        if book.state == "ending":
            if (await self._status(book)) in {2, 3}:
                self._note("ended", episode=book.episode)
                return
        elif self._post.dice.random() < _LEAVES:
            self._note("left", episode=book.episode)
            return
        await self._record(book)

    async def _status(self, book: Recorded) -> int:
        while True:
            try:
                return int((await self._recorders.client.get_episode(book.episode)).status)
            except LotError as error:
                if not passes(error):
                    raise
                await asyncio.sleep(0.5)

    async def _record(self, book: Recorded) -> None:
        """The rest of an episode, and its end. The same start again is the same episode."""
        while True:
            recorder = self._recorders.make(
                task=content.task(book.episode),
                episode_id=book.episode,
                request_id=f"start-{book.episode}",
                **self._options,
            )
            try:
                await recorder.__aenter__()
            except LotError as error:
                if not passes(error):
                    raise
                self._note("away", error=str(error))
                await asyncio.sleep(0.5)
                continue
            break
        try:
            await self._fill(recorder, book)
        except BaseException as error:
            await recorder.__aexit__(type(error), error, error.__traceback__)
            raise
        self._note("ending", episode=book.episode)
        await recorder.__aexit__(None, None, None)
        self._note("acked", episode=book.episode, n=recorder.last_sequence)
        self._note("ended", episode=book.episode)

    async def _fill(self, recorder: Any, book: Recorded) -> None:
        acked = await recorder.flush()  # what an earlier life left in a file is sent, too
        self._note("acked", episode=book.episode, n=acked)
        least = max(book.acked, book.kept)
        if not least <= acked <= book.sent:
            self._post.journal.bad(
                f"{book.episode}: {acked} stored when its agent came back; {book.acked} "
                f"acknowledged, {book.kept} kept, {book.sent} sent"
            )
        for number in range(acked + 1, book.count + 1):
            self._note("sent", episode=book.episode, n=number)
            await recorder.record(**content.event(book.episode, number))
            if self._spills:
                self._note("kept", episode=book.episode, n=number)
            if recorder.last_sequence > acked:
                acked = recorder.last_sequence
                self._note("acked", episode=book.episode, n=acked)
            if not self._post.over:
                await asyncio.sleep(self._post.pause(_PAUSE))
        if self._post.dice.random() < 0.2:
            recorder.fail("it did not work")
        else:
            recorder.succeed("it worked")
