"""Other stores that embed in Python, measured beside lot-grpc in one run."""
