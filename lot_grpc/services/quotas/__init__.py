"""Quotas: how much each namespace holds, and the refusal of what would take it over."""
