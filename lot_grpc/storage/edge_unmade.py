"""Stands in for the shard of a collection that has no record yet.

A shard takes half a dozen MiB of memory-mapped files for each of its indexes, two threads and up to
a tenth of a second to open. Most stores never use most collections, so a shard is created when its
first record is written. Until then this answers what an empty one would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from lot_grpc.domain.errors import StartupError, StoreUnavailableError


class UnmadeShard:
    """The methods of ``EdgeShard`` that the store calls, for no records."""

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

    def facet(self, _: Any) -> UnmadeShard:
        """Itself, a response without ``hits``."""
        return self

    def info(self) -> UnmadeShard:
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
        """A bug: ``Shard.make`` comes before the first write."""
        raise RuntimeError("the shard is not made yet")


@contextmanager
def creating(folder: Path) -> Iterator[None]:
    """Turns what fails to create a shard into ``StoreUnavailableError``: nothing was lost."""
    try:
        yield
    except (OSError, StartupError) as error:
        cause = error.strerror if isinstance(error, OSError) else "the log has the cause"
        raise StoreUnavailableError(
            f"the collection {folder.name!r} cannot be created in {folder.parent}: {cause}; "
            "remedy that, and repeat the call: the next write tries again",
            path=folder,
        ) from error
