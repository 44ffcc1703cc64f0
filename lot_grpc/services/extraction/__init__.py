"""Learning from episodes and from code."""
