"""Who calls: API keys, JSON Web Tokens and client certificates."""
