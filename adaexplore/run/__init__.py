"""Solve one task step by step, or many tasks in parallel."""
