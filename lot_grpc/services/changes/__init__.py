"""The change feed: change numbers on what is written, and watchers."""
