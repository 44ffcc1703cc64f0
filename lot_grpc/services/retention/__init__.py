"""Retention: policies of namespaces, and the sweep that enforces them."""
