"""Metrics and traces: what the service counts and times, and how that is published.

``instruments``, ``metrics`` and ``spans`` need only the standard library, and any package may use
them. The other modules publish what they hold.
"""
