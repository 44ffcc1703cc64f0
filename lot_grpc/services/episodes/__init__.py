"""Episodes: starting, recording, ending and deleting them."""
