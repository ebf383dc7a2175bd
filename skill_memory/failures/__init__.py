"""Recorded failures: where they are read, and what kind each is."""
