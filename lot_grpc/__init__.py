"""LOT: a memory service that learns, for agents in any language."""

__version__ = "0.1.0"
