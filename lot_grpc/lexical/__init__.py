"""Texts compared word by word: terms, and their BM25 weights."""
