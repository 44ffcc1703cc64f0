"""Finds secrets in texts by rules, and takes them out (docs/security.md)."""

from lot_grpc.redaction.finder import Finding, SecretFinder
from lot_grpc.redaction.rules import Rule, read_rules

__all__ = ["Finding", "Rule", "SecretFinder", "read_rules"]
