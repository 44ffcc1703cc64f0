"""What a caller must know of the parser, in a module that does not load it."""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = ("go", "java", "javascript", "python", "rust", "typescript")
"""The languages with a grammar."""

MAX_TOTAL_BYTES: Final = 3 * 1024 * 1024
"""Maximum size of all pieces in bytes: a response with them stays under the 4 MiB that gRPC clients
read by default."""

OUT_OF_MEMORY: Final = 3
"""Exit code of a child of ``helper`` for which Python had no memory."""
