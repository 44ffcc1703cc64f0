"""The wire: the only room that knows gRPC."""
