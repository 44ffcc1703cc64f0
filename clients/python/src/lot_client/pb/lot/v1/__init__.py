"""Package `lot.v1` of the contract."""
