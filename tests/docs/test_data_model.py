"""The pages of the data model and of the metrics are what the code says."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import DOCS, ROOT


def test_the_generated_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
