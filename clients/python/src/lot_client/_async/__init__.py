"""The client for asyncio. `_sync`, the one for threads, is generated from it."""
