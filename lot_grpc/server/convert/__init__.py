"""Proto ⇄ domain, one module a noun. ``<noun>_to_pb``, ``<noun>_from_pb``; pure functions."""
