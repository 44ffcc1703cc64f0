"""What is known for a task, gathered in one call."""
