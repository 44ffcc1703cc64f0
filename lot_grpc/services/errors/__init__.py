"""Errors and how they were solved."""
