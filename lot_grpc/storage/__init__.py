"""Where records are kept. Knows Records and Conditions, not kinds."""
