"""Switching the embedding model: vectors are made next to the current ones, then swapped."""
