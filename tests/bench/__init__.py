"""Benchmarks: the real server beside a bare one, in one run. ``python -m tests.bench --help``."""
