"""Tasks of known templates, and how well distilling finds them."""
