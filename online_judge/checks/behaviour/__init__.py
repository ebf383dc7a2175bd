"""Checks of what a candidate's text and process do."""
