"""Generated code of what the contract imports."""
