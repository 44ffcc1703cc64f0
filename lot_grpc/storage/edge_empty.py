"""Stands in for the shard of a collection that has had no record yet.

An open shard takes several MiB of memory-mapped files for each index, and two threads. Opening it
takes up to a tenth of a second. Most stores never use most collections, so a shard is created when
its first record is written. Until then, ``EmptyShard`` answers as an empty shard would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from lot_grpc.domain.errors import StartupError, StoreUnavailableError


class EmptyShard:
    """The methods of ``EdgeShard`` that the store calls, without any records."""

    points_count = 0
    payload_schema: Final[Mapping[str, Any]] = {}
    hits: tuple[Any, ...] = ()

    def retrieve(self, *_: Any) -> list[Any]:
        """No records."""
        return []

    def scroll(self, _: Any) -> tuple[list[Any], None]:
        """No records, and no next page."""
        return [], None

    def query_batch(self, request: Any) -> list[list[Any]]:
        """No hits for each query."""
        return [[] for _ in request.queries]

    def count(self, _: Any) -> int:
        """0."""
        return 0

    def facet(self, _: Any) -> EmptyShard:
        """Itself, as a response with no ``hits``."""
        return self

    def info(self) -> EmptyShard:
        """Itself: no points, no indexes."""
        return self

    def optimize(self) -> bool:
        """Nothing changed."""
        return False

    def flush(self) -> None:
        """Nothing to flush."""

    def close(self) -> None:
        """Nothing to close."""

    def update(self, _: Any) -> NoReturn:
        """Raises, since ``Shard.create`` must come before the first write."""
        raise RuntimeError("the shard has not been created yet")


@contextmanager
def creating(folder: Path) -> Iterator[None]:
    """Turns a failure to create a shard into ``StoreUnavailableError``: no data was lost."""
    try:
        yield
    except (OSError, StartupError) as error:
        cause = error.strerror if isinstance(error, OSError) else "the log has the cause"
        raise StoreUnavailableError(
            f"the collection {folder.name!r} cannot be created in {folder.parent}: {cause}; "
            "fix that and repeat the call; the next write tries again",
            path=folder,
        ) from error
