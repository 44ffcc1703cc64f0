"""What is known for a task, and its rendering for a prompt."""
