"""Checks: one question about a candidate or its problem in each file; imports no torch."""
