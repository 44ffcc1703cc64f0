"""The rules that the contract's fields carry."""
