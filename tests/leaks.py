"""Looks for credentials, and for marked contents, in what a server wrote about its calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

SECRETS = (
    re.compile(r"lot_[0-9a-f]{8}_[0-9a-f]{64}"),  # API keys
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),  # JSON Web Tokens
    re.compile(r"[Bb]earer +[A-Za-z0-9._~+/-]{12,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
)
"""What credentials look like."""


def leaks(files: Iterable[Path], markers: Iterable[str] = ()) -> list[str]:
    """Where files contain credentials or one of these texts: file and line, not the secret."""
    markers = list(markers)
    found = []
    for file in files:
        if not file.exists():
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if any(one.search(line) for one in SECRETS) or any(one in line for one in markers):
                found.append(f"{file}:{number}")
    return found


def audit_files(log: Path) -> list[Path]:
    """An audit log with its rotated files."""
    return sorted(log.parent.glob(f"{log.name}*"))
