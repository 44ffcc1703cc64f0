"""Memories: creating, reading, editing and deleting them."""
