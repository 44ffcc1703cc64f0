"""Vectors of another model: made beside the present ones, and then switched to."""
