"""Groups of like patterns, and the templates made of them."""
