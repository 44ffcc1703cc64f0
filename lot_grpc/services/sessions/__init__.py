"""Sessions: the short-term memory of one conversation or run."""
