"""The page of the data model is what the specs of the kinds say."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import DOCS, ROOT


def test_the_data_model_is_what_the_specs_say() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
