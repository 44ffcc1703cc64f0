"""Patterns: saving, reading, editing, deleting, pruning; feedback and lineage."""
