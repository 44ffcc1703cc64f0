"""Source code to its pieces. The only room that knows tree-sitter."""
