"""Retrievals: what each recall was asked, and what it showed."""
