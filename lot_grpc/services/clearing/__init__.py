"""Namespaces as a whole, listed and cleared, and what in them belongs to a subject."""
