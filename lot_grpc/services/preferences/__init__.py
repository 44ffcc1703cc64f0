"""Preferences and their former values."""
