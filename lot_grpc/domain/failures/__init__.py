"""Failed episodes understood: what an error says, and what a group of them has in common."""
