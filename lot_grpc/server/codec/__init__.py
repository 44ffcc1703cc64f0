"""Proto ⇄ domain, one module a topic: ``<kind>_to_pb`` and ``<kind>_from_pb``; pure functions."""
