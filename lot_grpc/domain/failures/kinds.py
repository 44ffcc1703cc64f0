"""Kinds of failures that software and agents meet, each in several wordings.

They are landmarks: an error is compared by its words and also by its distance to each of these,
since two wordings of one cause have few words in common but are near the same landmarks (explicit
semantic analysis; Gabrilovich and Markovitch, 2007). No failure is assigned to one of them: a cause
that is none of these is identified by its own words alone.
"""

from __future__ import annotations

from typing import Final

from lot_grpc.data import read_blocks

KINDS: Final = tuple(map(tuple, read_blocks("failure_kinds.txt")))
