"""Nothing that we load reports to its maker."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.process import run


def test_the_model_runs_without_a_trace_in_the_home_folder(data: Path, tmp_path: Path) -> None:
    """ONNX Runtime's telemetry keeps a database there before it sends anything."""
    home = tmp_path / "home"
    home.mkdir()
    ran = run(data, "check", settings={"HOME": str(home), "XDG_CACHE_HOME": ""})
    assert ran.code == 0, ran
    assert [path for path in home.rglob("*") if path.is_file()] == []
