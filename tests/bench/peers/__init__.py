"""Measures lot-grpc next to other stores that run inside a Python process."""
