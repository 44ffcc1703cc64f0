"""Namespaces as a whole: listing and clearing them."""
