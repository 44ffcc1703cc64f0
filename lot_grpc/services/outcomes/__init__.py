"""Outcomes: the log, the aggregates that count them, and what they tell about a query."""
