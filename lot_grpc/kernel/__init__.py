"""Durable writes: every way to write several records safely, implemented once for all services.

The store has no transactions across records. Their replacements are here, and each module is proven
by itself in ``tests/kernel``: a process may die before and after any write, twice in a row, on a
store of its own or a shared one.
"""
