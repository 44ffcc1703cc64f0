"""Test doubles, for this service and for applications built on it.

``InMemoryStore`` (in ``.in_memory``) is the reference store, ``FaultInjectingStore`` (in
``.faults``) dies at a chosen write, ``HashingEmbedder`` and ``OverlapReranker`` (in ``.hashing``)
need no model. No module of the service imports this package.
"""
