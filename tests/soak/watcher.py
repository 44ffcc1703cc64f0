"""A client that is told of changes and notes each, and one that replays episodes."""

from __future__ import annotations

import threading
import time
from datetime import UTC
from itertools import islice
from typing import Any

from google.protobuf.json_format import MessageToDict
from lot_client import LotClient, LotError
from lot_client.pb.lot.v1.change_pb2 import ChangeEvent, ChangeType
from lot_client.pb.lot.v1.resource_kind_pb2 import ResourceKind

from tests.soak import content
from tests.soak.calls import Post, edits, passes

LAST = "the-end"
"""Memory that is stored after everything else."""

_QUIET = 3.0


class Watcher:
    """Watches from the start, and after its death from the cursor in its journal."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._client = LotClient(post.address)
        cursors = [e["cursor"] for e in post.journal.entries if e["kind"] in {"change", "at"}]
        self._cursor = cursors[-1] if cursors else ""
        self._ended = any(e.get("id") == LAST for e in post.journal.entries)
        self._heard = time.monotonic()
        self._closed = False

    def run(self) -> None:
        """Until the last thing was told, and then nothing for a while."""
        while not self._closed:
            try:
                self._watch()
            except LotError as error:
                if not passes(error):
                    raise
                time.sleep(0.5)

    def _watch(self) -> None:
        watch = self._client.watch_changes(
            resource_kinds=("PATTERN", "EPISODE", "MEMORY"),
            types=("STORED", "UPDATED", "DELETED"),
            after_cursor=self._cursor,
            from_start=not self._cursor,
            heartbeat_interval=1.0,
        )
        threading.Thread(target=self._close_when_quiet, args=(watch,), daemon=True).start()
        with watch:
            if not self._cursor:
                self._cursor = watch.cursor
                self._post.journal.write("at", cursor=self._cursor)
            for change in watch:
                self._heard = time.monotonic()
                self._cursor = watch.cursor
                self._post.journal.write("change", **_plain(change), cursor=self._cursor)
                self._ended |= change.id == LAST

    def _close_when_quiet(self, watch: Any) -> None:
        while not (self._ended and time.monotonic() > self._heard + _QUIET):
            time.sleep(0.2)
        self._closed = True
        watch.close()


def _plain(change: ChangeEvent) -> dict[str, Any]:
    return {
        "type": ChangeType.Name(change.type).removeprefix("CHANGE_TYPE_"),
        "resource_kind": ResourceKind.Name(change.resource_kind).removeprefix("RESOURCE_KIND_"),
        "id": change.id,
        "version": _version(change),
    }


def _version(change: ChangeEvent) -> int:
    if change.HasField("pattern"):
        return edits(change.pattern.metadata) + int(change.pattern.outcomes.usage_count)
    return int(change.HasField("episode") and change.episode.status in {2, 3})


class Replayer:
    """Replays what is being recorded, and checks each event."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._client = LotClient(post.address)

    def run(self) -> None:
        """Until the run is over."""
        while not self._post.over:
            try:
                self._replay()
            except LotError as error:
                if not passes(error):
                    raise
            time.sleep(self._post.pause(0.3))

    def _replay(self) -> None:
        newest = islice(self._client.list_episodes(page_size=20), 20)
        mine = [episode for episode in newest if episode.episode_id.startswith("agent-")]
        if not mine:
            return
        episode = self._post.dice.choice(mine)
        name, count = episode.episode_id, episode.event_count
        after = self._post.dice.choice((0, 0, count // 2))
        told = after
        for event in self._client.replay_episode(name, after_sequence=after):
            told += 1
            digest = content.digest(
                event.event_type, MessageToDict(event.data), event.event_time.ToDatetime(UTC)
            )
            if event.sequence != told or digest != content.event_digest(name, event.sequence):
                self._post.journal.bad(f"{name}: the replay of event {told} is not what was sent")
                return
        if told < count:
            self._post.journal.bad(f"{name}: the replay ends at {told} of {count}")
        self._post.journal.write("replayed", events=told - after)
