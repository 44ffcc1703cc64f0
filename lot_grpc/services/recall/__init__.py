"""Recall: searching, ranking, and remembering what was asked."""
