"""Facts that checks and evaluations find; imports no torch."""
