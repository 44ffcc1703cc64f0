"""Measures the quality of recall, with sets of queries whose answers are known."""
