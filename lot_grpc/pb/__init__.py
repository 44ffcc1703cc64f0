"""Generated code of the contract. Do not edit: see `proto/README.md`."""
