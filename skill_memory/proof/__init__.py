"""Proof of rules: candidates that fail as a rule says, and neighbours that compile."""
