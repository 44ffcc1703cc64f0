"""What is learned from episodes and from code."""
