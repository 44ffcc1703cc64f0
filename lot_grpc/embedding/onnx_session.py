"""Sessions of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def open_session(model: Path, threads: int = 1) -> Any:
    """Load a model that runs on ``threads`` threads, the caller's included."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The additional threads spin while they wait for work, which makes a short run a third faster.
    # By default they would keep spinning after the run, on the core that the event loop needs.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
