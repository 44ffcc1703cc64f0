"""The client for threads, generated from `_async` by `generate_sync.py`, primitives apart."""
