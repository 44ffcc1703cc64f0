"""Namespaces as a whole: what there is, and clearing them."""
