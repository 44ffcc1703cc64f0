"""Text to words that are compared one by one: terms, and their BM25 weights."""
