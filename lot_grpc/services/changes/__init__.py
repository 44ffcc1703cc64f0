"""The feed of changes: stamps on what is written, and who watches them."""
