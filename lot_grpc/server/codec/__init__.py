"""Messages ⇄ domain. ``generic`` copies fields with the same name; the rest is specific to a kind.

Functions are named ``…_to_pb`` and ``…_from_pb``.
"""
