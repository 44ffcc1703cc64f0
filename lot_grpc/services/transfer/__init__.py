"""Moving what a namespace holds from store to store."""
