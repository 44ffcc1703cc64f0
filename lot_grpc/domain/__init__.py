"""Entities and rules, without I/O or clock, using only the standard library."""
