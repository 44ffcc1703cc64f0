"""Durable writes: each way to write more than one record safely, once, for all services.

The store has no transaction over several records. What stands in for one is here, and each module
is proven by itself in ``tests/kernel``: a process may die before and after any write, twice in a
row, alone on its store or beside others.
"""
