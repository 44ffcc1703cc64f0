"""Groups of similar patterns, and the templates made from them."""
