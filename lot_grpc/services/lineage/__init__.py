"""Which record supersedes which, for the kinds whose records replace each other."""
