"""What an error message says: which error it is, and in what two of one kind differ."""
