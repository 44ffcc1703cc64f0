"""Messages ⇄ domain. ``generic`` copies what has the same name; the rest is special to a kind.

Named ``…_to_pb`` and ``…_from_pb``.
"""
