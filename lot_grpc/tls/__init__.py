"""TLS of the server: certificates from files, checked before they are used, and read anew."""
