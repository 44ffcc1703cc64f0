"""Outcomes: facts, the aggregates that take them in, and what they say of a query."""
