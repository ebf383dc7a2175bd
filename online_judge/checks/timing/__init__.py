"""Checks of timed calls and their times."""
