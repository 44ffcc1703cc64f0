"""The benchmarks are not run by the suite; that what they name is there is."""

from __future__ import annotations

from tests.bench import stores


def test_every_file_that_shapes_a_stored_pattern_is_there() -> None:
    assert len(stores._recipe()) == 12
