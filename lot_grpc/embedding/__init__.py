"""Text to vectors.

``open_fastembed`` (in ``.fastembed``) runs a model in this process, ``open_openai`` (in
``.openai``) calls another server. Importing this package loads neither fastembed nor ONNX Runtime.
"""

import os

# ONNX Runtime's wheels report usage to their vendor, from native code and with a database in the
# home folder; its own `disable_telemetry_events` comes too late. The hub's client reports too.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
