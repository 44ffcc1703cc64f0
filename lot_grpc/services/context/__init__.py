"""Everything known for a task, collected in one call."""
