"""A soak: clients, connections and the server hurt at random, and everything counted at the end."""
