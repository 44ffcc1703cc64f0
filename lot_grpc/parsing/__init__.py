"""Splits source code into pieces. The only package that knows tree-sitter."""
