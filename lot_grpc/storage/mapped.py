"""Gives memory back that Edge takes for reading its indexes when it opens a shard.

It reads the stored form of each payload index of a mutable segment through a memory map, holes
included, and keeps what it needs on the heap; the map stays for writes. Over all collections that
leaves 1 GB resident which nothing looks at again.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_MAPS: Final = Path("/proc/self/maps")
_INDEX_MAP: Final = re.compile(r"^(\w+)-(\w+) r..s .*?(/.*/payload_index/.*)$", re.MULTILINE)


def release_indexes(folder: Path, collections: Iterable[str]) -> None:
    """Unmap the resident pages of the payload indexes of collections in ``folder``. On Linux only.

    Changes no content: the pages are of shared file maps, so what was written to them stays in the
    page cache and reaches the file, and the next access maps them again (``man 2 madvise``).
    """
    if not _MAPS.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    below = tuple(f"{folder.resolve()}/{name}/" for name in collections)
    for start, end, file in _INDEX_MAP.findall(_MAPS.read_text()):
        if file.startswith(below):
            address = int(start, 16)
            madvise(address, int(end, 16) - address, mmap.MADV_DONTNEED)
