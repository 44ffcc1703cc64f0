"""Analysis of failed episodes: their errors, and what groups of them have in common."""
