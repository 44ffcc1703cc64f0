"""Recall: searching, ranking, and recording queries and their results."""
