"""Vendors, one in each file: a client, and the facts about it that other parts of a run need."""
