"""Generated code of the contract."""
