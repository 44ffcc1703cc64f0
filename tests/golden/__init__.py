"""Texts that are kept and compared word by word."""
