"""Proto ⇄ domain, one module a kind. ``<kind>_to_pb``, ``<kind>_from_pb``; pure functions."""
