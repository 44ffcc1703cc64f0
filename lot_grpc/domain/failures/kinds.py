"""Kinds of failures that software and agents meet, each told in a few ways.

They are landmarks: an error is compared by what it says and also by which of these it is near to,
since two wordings of one cause have few words in common but lie near the same landmarks (explicit
semantic analysis; Gabrilovich and Markovitch, 2007). No failure is put into one of them: a cause
that is none of these is told by its own words alone.
"""

from __future__ import annotations

from typing import Final

from lot_grpc.data import read_blocks

KINDS: Final = tuple(map(tuple, read_blocks("failure_kinds.txt")))
