"""Reads error messages: which error a message is, and how two of the same error differ."""
