"""The stores. They know records and conditions, but not the kinds of record."""
