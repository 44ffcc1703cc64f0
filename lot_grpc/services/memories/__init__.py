"""What is worth knowing: memories, error solutions, preferences, and seeds of them."""
