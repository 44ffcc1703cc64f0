"""A flood of one principal beside a steady one: ``python -m tests.flood``."""
