"""A fuzz: every RPC is sent what hurts, from a seed, and the server has to stay as it should be."""
