"""A command that is started with closed standard streams, as by some supervisors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_NUMBERS = """
import os
import sys
from lot_grpc import cli
cli._open_standard_streams()
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(2, b"a library's message")
os.write(file, str(file).encode())
assert all(map(os.get_inheritable, range(3))), "child processes have them too"
sys.stderr.write("")
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_standard_stream(tmp_path: Path, closed: str) -> None:
    """Else what is printed, also by libraries, would be written into a file of the store."""
    file = tmp_path / "file"
    call = [sys.executable, "-c", _NUMBERS, str(file)]
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *call], stderr=subprocess.DEVNULL, check=False
    )
    assert ran.returncode == 0
    assert int(file.read_text()) > 2


@pytest.mark.parametrize(
    ("closed", "arguments"),
    [(">&-", "keys list"), ("2>&-", "keys list"), ("<&-", "erase alice --address 127.0.0.1:9")],
)
def test_a_command_ends_as_it_would_otherwise(closed: str, arguments: str) -> None:
    call = [sys.executable, "-m", "lot_grpc", *arguments.split()]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOT_")}
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *call], env=kept, capture_output=True, check=False
    )
    assert ran.returncode == 2, "LOT_AUTH_KEYS is not set, or nobody can confirm"
