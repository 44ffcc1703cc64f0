"""What is known for a task, and how it is put into words for a prompt."""
